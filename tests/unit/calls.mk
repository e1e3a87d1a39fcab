# SPDX-License-Identifier: Apache-2.0
UNITS += unit/calls
unit/calls_SRCS := tests/unit/calls.c tools/prof-bpf/calls.c
unit/calls_LIBS := -lcriterion
