UNITS += unit/cfi
unit/cfi_SRCS := tests/unit/cfi.c tools/prof-deltas/cfi.c tools/prof-deltas/expr.c tools/prof-deltas/rows.c tools/prof-deltas/print.c
unit/cfi_LIBS := -lcriterion
