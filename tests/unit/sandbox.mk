# SPDX-License-Identifier: Apache-2.0
UNITS += unit/sandbox
unit/sandbox_SRCS := tests/unit/sandbox.c
unit/sandbox_LIBS := -lcriterion
