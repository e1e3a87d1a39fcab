# SPDX-License-Identifier: Apache-2.0
UNITS += unit/intern
unit/intern_SRCS := tests/unit/intern.c tools/prof-bpf/intern.c
unit/intern_LIBS := -lcriterion
