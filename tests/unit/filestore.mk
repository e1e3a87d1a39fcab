# SPDX-License-Identifier: Apache-2.0
UNITS += unit/filestore
unit/filestore_SRCS := tests/unit/filestore.c $(addprefix tools/prof-symd/,filestore.c lazy.c program.c $(symd_SYMBOLS) dwarf.c dwarfwire.c $(symd_DWARF) gosym.c names.c demangle.c)
unit/filestore_LIBS := -lcriterion -ldw -lelf -llzma -lz -liberty -lZydis
