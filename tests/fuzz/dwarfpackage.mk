# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/dwarfpackage
fuzz/dwarfpackage_SRCS := tests/fuzz/dwarfpackage.c $(addprefix tools/prof-symd/,dwarfpackage.c $(symd_SYMBOLS) demangle.c)
fuzz/dwarfpackage_LIBS := -llzma -lz -liberty -lZydis
fuzz/dwarfpackage_MAX  := 1024
