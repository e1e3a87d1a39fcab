# SPDX-License-Identifier: Apache-2.0
UNITS += unit/lazy
unit/lazy_SRCS := tests/unit/lazy.c $(addprefix tools/prof-symd/,lazy.c program.c $(symd_SYMBOLS) dwarf.c dwarfwire.c $(symd_DWARF) gosym.c names.c demangle.c)
unit/lazy_LIBS := -lcriterion -ldw -lelf -llzma -lz -liberty -lZydis
