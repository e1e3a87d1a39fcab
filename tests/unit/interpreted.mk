# SPDX-License-Identifier: Apache-2.0
UNITS += unit/interpreted
unit/interpreted_SRCS := tests/unit/interpreted.c $(addprefix tools/prof-symd/,named.c definitions.c events.c idtable.c functions.c idmap.c filestore.c program.c $(symd_SYMBOLS) dwarf.c dwarfwire.c dwarfinfo.c lazy.c gosym.c names.c demangle.c held.c jit.c codemap.c perfmap.c jitdump.c objects.c kept.c) $(symd_RUNTIMES)
unit/interpreted_LIBS := -lcriterion -ldw -lelf -llzma -lz -liberty -lZydis
