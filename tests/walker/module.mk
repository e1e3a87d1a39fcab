EXTRACT_SRCS := $(addprefix tools/prof-deltas/,rows.c cfi.c expr.c elf.c extract.c)

HELPERS += tests/walk-live
tests/walk-live_SRCS := tests/walker/walk-live.c tests/walker/process.c tools/prof-bpf/tables.c tools/prof-bpf/slabs.c tools/prof-bpf/loader.c $(EXTRACT_SRCS)
tests/walk-live_LIBS := -lbpf -lelf -lz
tests/walk-live_GEN := $(B)/gen/sample.skel.h
