# SPDX-License-Identifier: Apache-2.0
UNITS += unit/log
unit/log_SRCS := tests/unit/log.c
unit/log_LIBS := -lcriterion
