# SPDX-License-Identifier: Apache-2.0
UNITS += unit/bus
unit/bus_SRCS := tests/unit/bus.c
unit/bus_LIBS := -lcriterion $(foreach f,malloc realloc,-Wl,--wrap=$(f))
