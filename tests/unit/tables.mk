UNITS += unit/tables
unit/tables_SRCS := tests/unit/tables.c $(tables_PARTS)
unit/tables_LIBS := -lbpf -lcriterion
