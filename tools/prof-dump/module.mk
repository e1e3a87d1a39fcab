# SPDX-License-Identifier: Apache-2.0
# Made of the other tools' own rows, tables and names: all of their sources but those that serve.
DUMP_TABLES_SRCS := $(addprefix tools/prof-bpf/,tables.c slabs.c procfs.c)
DUMP_ROWS_SRCS   := $(filter-out $(addprefix tools/prof-deltas/,main.c serve.c print.c),$(wildcard tools/prof-deltas/*.c))
DUMP_NAMES_SRCS  := $(filter-out $(addprefix tools/prof-symd/,main.c serve.c named.c),$(wildcard tools/prof-symd/*.c))
TOOLS += prof-dump
prof-dump_SRCS := $(wildcard tools/prof-dump/*.c) $(DUMP_TABLES_SRCS) $(DUMP_ROWS_SRCS) $(DUMP_NAMES_SRCS)
prof-dump_LIBS  = -lbpf $(prof-deltas_LIBS) $(prof-symd_LIBS)
