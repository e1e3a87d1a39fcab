FUZZERS += fuzz/walk
fuzz/walk_SRCS := tests/fuzz/walk.c tools/prof-bpf/deferred.c tools/prof-bpf/tables.c tools/prof-bpf/slabs.c
fuzz/walk_LIBS := -lbpf
