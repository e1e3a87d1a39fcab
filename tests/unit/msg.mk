# SPDX-License-Identifier: Apache-2.0
UNITS += unit/msg
unit/msg_SRCS := tests/unit/msg.c
unit/msg_LIBS := -lcriterion
