# SPDX-License-Identifier: Apache-2.0
WALKER_SRCS := tests/walker/process.c $(addprefix tools/prof-dump/,space.c interpreted.c caller.c half.c live.c) tools/prof-symd/jitfinder.c $(tables_PARTS) $(addprefix tools/prof-bpf/,procfs.c weave.c) $(deltas_PARTS)

HELPERS += tests/walk-live tests/late tests/step
tests/walk-live_SRCS := tests/walker/walk-live.c $(WALKER_SRCS) tools/prof-bpf/loader.c tools/prof-bpf/record.c tools/prof-bpf/runtimes.c
tests/walk-live_LIBS := -lbpf $(deltas_LIBS)
tests/walk-live_GEN := $(B)/gen/sample.skel.h $(RUNTIMES_SKEL) $(RUNTIMES_WALK)
tests/late_SRCS := tests/walker/late.c $(WALKER_SRCS) tools/prof-bpf/loader.c tools/prof-bpf/record.c tools/prof-bpf/runtimes.c
tests/late_LIBS := -lbpf $(deltas_LIBS)
tests/late_GEN := $(B)/gen/sample.skel.h $(RUNTIMES_SKEL) $(RUNTIMES_WALK)
tests/step_SRCS := tests/walker/step.c tests/walker/shadow.c $(WALKER_SRCS)
tests/step_LIBS := -lbpf $(deltas_LIBS)
tests/step_GEN := $(RUNTIMES_WALK)
