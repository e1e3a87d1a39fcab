HELPERS += tests/walk-live
tests/walk-live_SRCS := tests/walker/walk-live.c tests/walker/process.c tools/prof-bpf/tables.c tools/prof-bpf/slabs.c tools/prof-bpf/loader.c $(deltas_PARTS)
tests/walk-live_LIBS := -lbpf $(deltas_LIBS)
tests/walk-live_GEN := $(B)/gen/sample.skel.h
