# SPDX-License-Identifier: Apache-2.0
UNITS += unit/fdlane
unit/fdlane_SRCS := tests/unit/fdlane.c
unit/fdlane_LIBS := -lcriterion
