FUZZERS += fuzz/walk
fuzz/walk_SRCS := tests/fuzz/walk.c tools/prof-bpf/deferred.c $(tables_PARTS)
fuzz/walk_LIBS := -lbpf
