# SPDX-License-Identifier: Apache-2.0
UNITS += unit/summary
unit/summary_SRCS := tests/unit/summary.c tools/profpipe/summary.c
unit/summary_LIBS := -lcriterion -lcjson
