# SPDX-License-Identifier: Apache-2.0
UNITS += unit/tally
unit/tally_SRCS := tests/unit/tally.c tools/profpipe/tally.c
unit/tally_LIBS := -lcriterion
