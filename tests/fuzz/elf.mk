FUZZERS += fuzz/elf
fuzz/elf_SRCS := tests/fuzz/elf.c $(patsubst %,tools/prof-deltas/%.c,extract elf cfi expr rows source)
fuzz/elf_LIBS := -lelf -lz -lzstd
