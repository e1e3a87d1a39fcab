UNITS += unit/weave
unit/weave_SRCS := tests/unit/weave.c tools/prof-bpf/weave.c
unit/weave_LIBS := -lcriterion
