# SPDX-License-Identifier: Apache-2.0
# The skeleton of a runtime, in tools of its own under toy/: what bpf/runtimes.def is read by is compiled again with the toy's line in it, the rest is the product's.
TOY      := $(B)/toy
TOY_OWN  := $(addprefix tools/,prof-bpf/answers.c prof-bpf/runtimes.c prof-symd/runtime.c prof-dump/interpreted.c)
TOY_OBJS := $(patsubst %.c,$(TOY)/%.o,$(TOY_OWN) tests/skeleton/toy.c)
TOY_GEN  := $(TOY)/gen/runtimes.skel.h $(TOY)/gen/runtimes_walk.h

$(B)/gen/toy.bpf.o: tests/skeleton/toy.bpf.c $(wildcard tests/skeleton/*.h bpf/*.h bpf/*.def)
	@mkdir -p $(@D)
	@echo "  BPF     $<"
	@$(COMPILE_BPF)

$(TOY)/gen/runtimes.skel.h: $(RUNTIMES_SKEL) $(B)/gen/toy.skel.h
	@mkdir -p $(@D)
	@(cat $<; echo '#include "toy.skel.h"') > $@

$(TOY)/gen/runtimes_walk.h: $(RUNTIMES_WALK)
	@mkdir -p $(@D)
	@(cat $<; echo '#include "tests/skeleton/toy_walk.h"') > $@

$(TOY_OBJS): $(TOY)/%.o: %.c $(TOY_GEN)
	@mkdir -p $(@D)
	@echo "  CC      $< (with the toy)"
	@$(CC) -I$(TOY)/gen $(CPPFLAGS) -DRUNTIMES_MORE='"tests/skeleton/runtimes.def"' $(CFLAGS) -MMD -MP -c $< -o $@

HELPERS += toy/program $(addprefix toy/,$(TOOLS))
toy/program_SRCS := tests/skeleton/program.c
toy/program_LIBS := -rdynamic

define with_toy
toy/$(1)_SRCS := $(filter-out $(TOY_OWN),$($(1)_SRCS))
toy/$(1)_OBJS := $($(1)_OBJS) $(patsubst %.c,$(TOY)/%.o,$(filter $(TOY_OWN),$($(1)_SRCS)) $(if $(filter tools/prof-symd/runtime.c,$($(1)_SRCS)),tests/skeleton/toy.c))
toy/$(1)_LIBS := $($(1)_LIBS)
endef
$(foreach t,$(TOOLS),$(eval $(call with_toy,$(t))))
