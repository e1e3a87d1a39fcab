# All that recognizes runtimes in files and names their frames: for tests, too.
symd_RUNTIMES := $(patsubst %,tools/prof-symd/%.c,runtime elfview memory) $(foreach r,$(RUNTIMES),$(wildcard tools/prof-symd/$(r).c tools/prof-symd/$(r)_*.c))

# ELF files and their symbols: for tests, too.
symd_SYMBOLS := symfile.c symtable.c symbuckets.c symindex.c gaps.c extents.c codestarts.c plt.c
# libdw's side.
symd_DWARF := dwarfinfo.c dwarfimage.c dwarfnames.c dwarfsplit.c dwarflist.c dwarfpackage.c dwarfranges.c

TOOLS += prof-symd
prof-symd_SRCS := $(wildcard tools/prof-symd/*.c)
prof-symd_LIBS := -ldw -lelf -llzma -lz -liberty -lZydis
