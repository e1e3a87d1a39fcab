# SPDX-License-Identifier: Apache-2.0
UNITS += unit/landlock
unit/landlock_SRCS := tests/unit/landlock.c
unit/landlock_LIBS := -lcriterion
