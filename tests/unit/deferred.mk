UNITS += unit/deferred
unit/deferred_SRCS := tests/unit/deferred.c tools/prof-bpf/deferred.c $(tables_PARTS)
unit/deferred_LIBS := -lbpf -lcriterion
