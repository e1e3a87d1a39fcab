# SPDX-License-Identifier: Apache-2.0
UNITS += unit/closing
unit/closing_SRCS := tests/unit/closing.c tools/prof-bpf/closing.c
unit/closing_LIBS := -lcriterion
