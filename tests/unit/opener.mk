UNITS += unit/opener
unit/opener_SRCS := tests/unit/opener.c tools/prof-bpf/opener.c tools/prof-bpf/procfs.c
unit/opener_LIBS := -lcriterion
