# SPDX-License-Identifier: Apache-2.0
UNITS += unit/bootclock
unit/bootclock_SRCS := tests/unit/bootclock.c tools/prof-bpf/bootclock.c
unit/bootclock_LIBS := -lcriterion
