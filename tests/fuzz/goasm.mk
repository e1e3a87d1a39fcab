# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/goasm
fuzz/goasm_SRCS := tests/fuzz/goasm.c $(patsubst %,tools/prof-deltas/%.c,goasm gostate insn)
fuzz/goasm_LIBS := -lZydis
