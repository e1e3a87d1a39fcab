# SPDX-License-Identifier: Apache-2.0
UNITS += unit/buf
unit/buf_SRCS := tests/unit/buf.c
unit/buf_LIBS := -lcriterion
