# All that makes rows of a file, and what it links: for other tools' tests, too.
deltas_PARTS := $(patsubst %,tools/prof-deltas/%.c,extract source elf cfi cfi_run cfi_state encoded expr rows gorows goasm gostate dynamic ucontext greenlet ehreturn derive known starts taken place stretch stubs flow frame graph cases insn)
deltas_LIBS  := -lelf -lz -lzstd -lZydis

TOOLS += prof-deltas
prof-deltas_SRCS := $(patsubst %,tools/prof-deltas/%.c,main serve print) $(deltas_PARTS)
prof-deltas_LIBS := $(deltas_LIBS)
# Else gcc keeps the interpreter's state in vector registers, which it is taken out of for each instruction.
$(B)/tools/prof-deltas/cfi_run.o: CFLAGS += -fno-tree-slp-vectorize
