# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/ehreturn
fuzz/ehreturn_SRCS := tests/fuzz/ehreturn.c $(patsubst %,tools/prof-deltas/%.c,ehreturn insn)
fuzz/ehreturn_LIBS := -lZydis
fuzz/ehreturn_MAX  := 2048
