UNITS += unit/deferred
unit/deferred_SRCS := tests/unit/deferred.c tools/prof-bpf/deferred.c tools/prof-bpf/tables.c tools/prof-bpf/slabs.c
unit/deferred_LIBS := -lbpf -lcriterion
