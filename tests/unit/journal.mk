# SPDX-License-Identifier: Apache-2.0
UNITS += unit/journal
unit/journal_SRCS := tests/unit/journal.c $(patsubst %,tools/prof-export/%.c,$(filter-out summary profiles,$(export_PARTS)))
unit/journal_OBJS := $(prof-export_OBJS)
unit/journal_LIBS := -lcriterion $(prof-export_LIBS)
