UNITS += unit/tables
unit/tables_SRCS := tests/unit/tables.c tools/prof-bpf/tables.c tools/prof-bpf/slabs.c
unit/tables_LIBS := -lbpf -lcriterion
