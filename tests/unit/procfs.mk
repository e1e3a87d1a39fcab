UNITS += unit/procfs
unit/procfs_SRCS := tests/unit/procfs.c tools/prof-bpf/procfs.c
unit/procfs_LIBS := -lcriterion
