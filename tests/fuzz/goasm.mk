# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/goasm
fuzz/goasm_SRCS := tests/fuzz/goasm.c tools/prof-deltas/goasm.c tools/prof-deltas/insn.c
fuzz/goasm_LIBS := -lZydis
