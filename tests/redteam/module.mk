# SPDX-License-Identifier: Apache-2.0
# Each tool that reads untrusted bytes, unchanged, with code that attacks its cell from inside and
# can leave out parts of that cell.
REDTEAM := $(patsubst %,tests/redteam/%.c,\
	takeover layers files descriptors sockets processes kernel rights acts)
# The functions that enter the parts of a cell.
REDTEAM_LAYERS := seccomp_enter landlock_enter landlock_enter_allowed emptyroot_prepare
PROGRAMS += $(patsubst %,tests/redteam-%,deltas symd export send cpus dump control)

define redteam
tests/redteam-$(1)_SRCS := $(REDTEAM) tools/$(2)/main.c $(3)
tests/redteam-$(1)_USES := $(2)
tests/redteam-$(1)_LIBS := $(call wrap,$(REDTEAM_LAYERS) $(4))
tests/redteam-$(1)_GEN  := $($(2)_GEN)
endef
$(eval $(call redteam,deltas,prof-deltas,tests/redteam/deltas.c,extract_rows))
$(eval $(call redteam,symd,prof-symd,tests/redteam/symd.c,symfile_open program_open))
$(eval $(call redteam,export,prof-export))
# Also the lender, which prof-send starts.
$(eval $(call redteam,send,prof-send))
# prof-cpus is a part of prof-bpf.
$(eval $(call redteam,cpus,prof-bpf))
$(eval $(call redteam,dump,prof-dump,tests/redteam/dump.c,walker_run space_add))
tests/redteam-control_SRCS := $(REDTEAM) tests/redteam/control.c
tests/redteam-control_USES := cell
tests/redteam-control_LIBS := $(call wrap,$(REDTEAM_LAYERS))
