# SPDX-License-Identifier: Apache-2.0
UNITS += unit/lastword
unit/lastword_SRCS := tests/unit/lastword.c
unit/lastword_LIBS := -lcriterion
