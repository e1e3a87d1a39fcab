UNITS += unit/expr
unit/expr_SRCS := tests/unit/expr.c tools/prof-deltas/expr.c
unit/expr_LIBS := -lcriterion
