# SPDX-License-Identifier: Apache-2.0
UNITS += unit/dwarf
unit/dwarf_SRCS := tests/unit/dwarf.c $(addprefix tools/prof-symd/,dwarf.c dwarfwire.c dwarfkeeper.c dwarfworker.c $(symd_SYMBOLS) names.c demangle.c)
unit/dwarf_LIBS := -lcriterion -llzma -lz -liberty -lZydis
