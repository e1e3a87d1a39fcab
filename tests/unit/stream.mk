# SPDX-License-Identifier: Apache-2.0
UNITS += unit/stream
unit/stream_SRCS := tests/unit/stream.c
unit/stream_LIBS := -lcriterion
