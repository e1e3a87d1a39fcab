# SPDX-License-Identifier: Apache-2.0
UNITS += unit/emptyroot
unit/emptyroot_SRCS := tests/unit/emptyroot.c
unit/emptyroot_LIBS := -lcriterion
