FUZZERS += fuzz/elf
fuzz/elf_SRCS := tests/fuzz/elf.c $(deltas_PARTS)
fuzz/elf_LIBS := $(deltas_LIBS) $(MEMORY_FILE_WRAP) $(LARGE_BLOCKS_WRAP)
