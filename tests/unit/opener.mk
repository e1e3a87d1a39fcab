UNITS += unit/opener
unit/opener_SRCS := tests/unit/opener.c $(addprefix tools/prof-bpf/,opener.c closing.c opening.c rooted.c sealed.c procfs.c)
unit/opener_LIBS := -lcriterion
