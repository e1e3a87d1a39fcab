# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/derive
fuzz/derive_SRCS := tests/fuzz/derive.c $(patsubst %,tools/prof-deltas/%.c,flow frame graph stretch cases insn)
fuzz/derive_LIBS := -lZydis
fuzz/derive_MAX  := 4096
