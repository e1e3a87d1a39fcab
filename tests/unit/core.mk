# SPDX-License-Identifier: Apache-2.0
UNITS += unit/core
unit/core_SRCS := tests/unit/core.c tools/prof-dump/core.c
unit/core_LIBS := -lcriterion
