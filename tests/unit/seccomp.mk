# SPDX-License-Identifier: Apache-2.0
UNITS += unit/seccomp
unit/seccomp_SRCS := tests/unit/seccomp.c
unit/seccomp_LIBS := -lcriterion
