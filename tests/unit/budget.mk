# SPDX-License-Identifier: Apache-2.0
UNITS += unit/budget
unit/budget_SRCS := tests/unit/budget.c
unit/budget_LIBS := -lcriterion
