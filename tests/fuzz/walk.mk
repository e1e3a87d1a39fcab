FUZZERS += fuzz/walk
fuzz/walk_SRCS := tests/fuzz/walk.c tools/prof-bpf/deferred.c tools/prof-bpf/tables.c
fuzz/walk_LIBS := -lbpf
