TOOLS += prof-deltas
prof-deltas_SRCS := $(patsubst %,tools/prof-deltas/%.c,main serve print extract elf cfi expr rows source)
prof-deltas_LIBS := -lelf -lz -lzstd
# Else gcc keeps the interpreter's state in vector registers, which it is taken out of for each instruction.
$(B)/tools/prof-deltas/cfi.o: CFLAGS += -fno-tree-slp-vectorize
