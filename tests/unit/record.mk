# SPDX-License-Identifier: Apache-2.0
UNITS += unit/record
unit/record_SRCS := tests/unit/record.c tools/prof-bpf/record.c
unit/record_LIBS := -lcriterion
