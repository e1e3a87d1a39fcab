# SPDX-License-Identifier: Apache-2.0
UNITS += unit/gopclntab
unit/gopclntab_SRCS := tests/unit/gopclntab.c
unit/gopclntab_LIBS := -lcriterion
