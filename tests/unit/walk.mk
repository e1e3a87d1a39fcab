UNITS += unit/walk
unit/walk_SRCS := tests/unit/walk.c tools/prof-bpf/tables.c tools/prof-bpf/slabs.c
unit/walk_LIBS := -lbpf -lcriterion
