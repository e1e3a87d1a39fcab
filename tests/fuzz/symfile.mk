# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/symfile
fuzz/symfile_SRCS := tests/fuzz/symfile.c $(addprefix tools/prof-symd/,$(symd_SYMBOLS) dwarf.c dwarfwire.c $(symd_DWARF) lazy.c gosym.c program.c names.c demangle.c)
fuzz/symfile_LIBS := -ldw -lelf -llzma -lz -liberty -lZydis $(MEMORY_FILE_WRAP)
