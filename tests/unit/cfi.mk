UNITS += unit/cfi
unit/cfi_SRCS := tests/unit/cfi.c $(patsubst %,tools/prof-deltas/%.c,cfi cfi_run cfi_state encoded expr rows print)
unit/cfi_LIBS := -lcriterion
