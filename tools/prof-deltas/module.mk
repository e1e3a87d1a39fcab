TOOLS += prof-deltas
prof-deltas_SRCS := $(patsubst %,tools/prof-deltas/%.c,main serve print extract elf cfi expr rows)
prof-deltas_LIBS := -lelf -lz
