# SPDX-License-Identifier: Apache-2.0
UNITS += unit/cell
unit/cell_SRCS := tests/unit/cell.c
unit/cell_LIBS := -lcriterion
