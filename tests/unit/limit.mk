UNITS += unit/limit
unit/limit_SRCS := tests/unit/limit.c $(addprefix tools/prof-bpf/,divide.c meter.c procfs.c)
unit/limit_LIBS := -lcriterion
