# SPDX-License-Identifier: Apache-2.0
UNITS += unit/buswire
unit/buswire_SRCS := tests/unit/buswire.c
unit/buswire_LIBS := -lcriterion
