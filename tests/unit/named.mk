# SPDX-License-Identifier: Apache-2.0
UNITS += unit/named
unit/named_SRCS := tests/unit/named.c $(addprefix tools/prof-symd/,named.c named_sending.c definitions.c events.c idtable.c functions.c idmap.c filestore.c program.c $(symd_SYMBOLS) dwarf.c dwarfwire.c $(symd_DWARF) lazy.c gosym.c names.c demangle.c held.c jit.c codemap.c perfmap.c jitdump.c objects.c objects_asking.c kept.c) $(symd_RUNTIMES)
unit/named_LIBS := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray -lcriterion -ldw -lelf -llzma -lz -liberty -lZydis
