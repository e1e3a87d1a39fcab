# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/dwarf
fuzz/dwarf_SRCS := tests/fuzz/dwarf.c $(addprefix tools/prof-symd/,$(symd_DWARF) dwarfwire.c lazy.c $(symd_SYMBOLS) names.c demangle.c)
fuzz/dwarf_LIBS := -ldw -lelf -llzma -lz -liberty -lZydis
fuzz/dwarf_MAX  := 8192
