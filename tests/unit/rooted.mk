# SPDX-License-Identifier: Apache-2.0
UNITS += unit/rooted
unit/rooted_SRCS := tests/unit/rooted.c tools/prof-bpf/rooted.c
unit/rooted_LIBS := -lcriterion
