UNITS += unit/sideband
unit/sideband_SRCS := tests/unit/sideband.c tools/prof-bpf/sideband.c
unit/sideband_LIBS := -lbpf -lcriterion
