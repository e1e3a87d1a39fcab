# SPDX-License-Identifier: Apache-2.0
# Each unprivileged tool as it is, and with it what tries things from inside of it once it serves.
REDTEAM := $(patsubst %,tests/redteam/%.c,takeover files held sockets processes kernel rights)
HELPERS += tests/redteam-deltas tests/redteam-symd tests/redteam-export tests/redteam-control
tests/redteam-deltas_SRCS  := $(REDTEAM) tests/redteam/deltas.c $(prof-deltas_SRCS)
tests/redteam-deltas_LIBS  := -Wl,--wrap=extract_rows $(prof-deltas_LIBS)
tests/redteam-symd_SRCS    := $(REDTEAM) tests/redteam/symd.c $(prof-symd_SRCS)
tests/redteam-symd_LIBS    := -Wl,--wrap=symfile_open $(prof-symd_LIBS)
tests/redteam-export_SRCS  := $(REDTEAM) $(prof-export_SRCS)
tests/redteam-export_OBJS   = $(prof-export_OBJS)
tests/redteam-export_LIBS  := $(prof-export_LIBS)
tests/redteam-export_GEN   := $(prof-export_GEN)
tests/redteam-control_SRCS := $(REDTEAM) tests/redteam/control.c
