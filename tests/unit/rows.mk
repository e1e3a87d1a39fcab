UNITS += unit/rows
unit/rows_SRCS := tests/unit/rows.c tools/prof-deltas/rows.c
unit/rows_LIBS := -lcriterion
