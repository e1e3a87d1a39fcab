# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/journal
fuzz/journal_SRCS := tests/fuzz/journal.c $(patsubst %,tools/prof-export/%.c,$(filter-out summary profiles,$(export_PARTS)))
fuzz/journal_OBJS = $(prof-export_OBJS)
fuzz/journal_GEN = $(prof-export_GEN)
fuzz/journal_LIBS := $(prof-export_LIBS) $(SCHEMA_ONCE_WRAP)
fuzz/journal_MAX  := 1024
