# SPDX-License-Identifier: Apache-2.0
UNITS += unit/derive
unit/derive_SRCS := tests/unit/derive.c tools/prof-deltas/flow.c tools/prof-deltas/insn.c tools/prof-deltas/cases.c
unit/derive_LIBS := -lcriterion -lZydis
