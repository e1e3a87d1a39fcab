UNITS += unit/walk
unit/walk_SRCS := tests/unit/walk.c tools/prof-bpf/tables.c
unit/walk_LIBS := -lbpf -lcriterion
