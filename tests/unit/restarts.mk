# SPDX-License-Identifier: Apache-2.0
UNITS += unit/restarts
unit/restarts_SRCS := tests/unit/restarts.c tools/profpipe/restarts.c
unit/restarts_LIBS := -lcriterion
