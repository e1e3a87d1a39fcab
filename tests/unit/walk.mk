UNITS += unit/walk
unit/walk_SRCS := tests/unit/walk.c $(tables_PARTS)
unit/walk_LIBS := -lbpf -lcriterion
