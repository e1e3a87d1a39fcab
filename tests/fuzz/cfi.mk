FUZZERS += fuzz/cfi
fuzz/cfi_SRCS := tests/fuzz/cfi.c $(patsubst %,tools/prof-deltas/%.c,cfi cfi_run cfi_state encoded expr rows)
