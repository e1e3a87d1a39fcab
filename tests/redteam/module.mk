# SPDX-License-Identifier: Apache-2.0
# Each tool that reads what strangers wrote as it is, with what tries things from inside of it, and lets parts of its cell be left out.
REDTEAM := $(patsubst %,tests/redteam/%.c,takeover layers files held sockets processes kernel rights acts)
REDTEAM_WRAP := $(patsubst %,-Xlinker --wrap=%,seccomp_enter landlock_enter emptyroot_prepare)
HELPERS += $(patsubst %,tests/redteam-%,deltas symd export cpus dump control)
tests/redteam-deltas_SRCS  := $(REDTEAM) tests/redteam/deltas.c $(prof-deltas_SRCS)
tests/redteam-deltas_LIBS  := $(REDTEAM_WRAP) -Wl,--wrap=extract_rows $(prof-deltas_LIBS)
tests/redteam-symd_SRCS    := $(REDTEAM) tests/redteam/symd.c $(prof-symd_SRCS)
tests/redteam-symd_LIBS    := $(REDTEAM_WRAP) -Wl,--wrap=symfile_open $(prof-symd_LIBS)
tests/redteam-export_SRCS  := $(REDTEAM) $(prof-export_SRCS)
tests/redteam-export_OBJS   = $(prof-export_OBJS)
tests/redteam-export_LIBS  := $(REDTEAM_WRAP) $(prof-export_LIBS)
tests/redteam-export_GEN   := $(prof-export_GEN)
# prof-bpf, of which prof-cpus is a part.
tests/redteam-cpus_SRCS    := $(REDTEAM) $(prof-bpf_SRCS)
tests/redteam-cpus_LIBS    := $(REDTEAM_WRAP) $(prof-bpf_LIBS)
tests/redteam-cpus_GEN     := $(prof-bpf_GEN)
tests/redteam-dump_SRCS    := $(REDTEAM) tests/redteam/dump.c $(prof-dump_SRCS)
tests/redteam-dump_LIBS     = $(REDTEAM_WRAP) -Wl,--wrap=walker_run -Wl,--wrap=space_add $(prof-dump_LIBS)
tests/redteam-dump_GEN     := $(prof-dump_GEN)
tests/redteam-control_SRCS := $(REDTEAM) tests/redteam/control.c
tests/redteam-control_LIBS := $(REDTEAM_WRAP)
