UNITS += unit/maps
unit/maps_SRCS := tests/unit/maps.c tools/prof-bpf/maps.c
unit/maps_LIBS := -lcriterion
