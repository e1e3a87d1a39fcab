# SPDX-License-Identifier: Apache-2.0
UNITS += unit/jitdump
unit/jitdump_SRCS := tests/unit/jitdump.c $(addprefix tools/prof-symd/,jitdump.c codemap.c)
unit/jitdump_LIBS := -lcriterion
