# SPDX-License-Identifier: Apache-2.0
UNITS += unit/account
unit/account_SRCS := tests/unit/account.c
unit/account_LIBS := -lcriterion
