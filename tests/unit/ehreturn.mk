# SPDX-License-Identifier: Apache-2.0
UNITS += unit/ehreturn
unit/ehreturn_SRCS := tests/unit/ehreturn.c $(patsubst %,tools/prof-deltas/%.c,ehreturn insn)
unit/ehreturn_LIBS := -lcriterion -lZydis
