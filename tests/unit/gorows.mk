# SPDX-License-Identifier: Apache-2.0
UNITS += unit/gorows
unit/gorows_SRCS := tests/unit/gorows.c tools/prof-deltas/print.c $(deltas_PARTS)
unit/gorows_LIBS := -lcriterion $(deltas_LIBS)
