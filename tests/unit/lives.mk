# SPDX-License-Identifier: Apache-2.0
UNITS += unit/lives
unit/lives_SRCS := tests/unit/lives.c tools/prof-export/lives.c
unit/lives_LIBS := -lcriterion
