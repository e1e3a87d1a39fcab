# SPDX-License-Identifier: Apache-2.0
UNITS += unit/insn
unit/insn_SRCS := tests/unit/insn.c tools/prof-deltas/insn.c
unit/insn_LIBS := -lcriterion -lZydis
