# SPDX-License-Identifier: Apache-2.0
UNITS += unit/scm
unit/scm_SRCS := tests/unit/scm.c
unit/scm_LIBS := -lcriterion
