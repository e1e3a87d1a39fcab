# SPDX-License-Identifier: Apache-2.0
UNITS += unit/derive
unit/derive_SRCS := tests/unit/derive.c $(patsubst %,tools/prof-deltas/%.c,flow frame graph stretch cases insn)
unit/derive_LIBS := -lcriterion -lZydis
