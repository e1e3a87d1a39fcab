# SPDX-License-Identifier: Apache-2.0
# Made of the other tools' own rows, tables and names: of prof-symd all but what serves.
TOOLS += prof-dump
prof-dump_SRCS := $(wildcard tools/prof-dump/*.c) $(tables_PARTS) $(addprefix tools/prof-bpf/,procfs.c weave.c) $(deltas_PARTS) \
                  $(filter-out $(addprefix tools/prof-symd/,main.c serve.c named.c named_sending.c definitions.c events.c idtable.c),$(wildcard tools/prof-symd/*.c))
prof-dump_LIBS  = -lbpf $(deltas_LIBS) $(prof-symd_LIBS)
prof-dump_GEN   := $(RUNTIMES_WALK)
