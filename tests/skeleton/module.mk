# SPDX-License-Identifier: Apache-2.0
# The skeleton of a runtime, in tools of its own under toy/: the files that read bpf/runtimes.def
# are compiled again with the toy's line in it; the rest is the product's.
TOY      := $(B)/toy
TOY_prof-bpf  := tools/prof-bpf/peers/requests.c tools/prof-bpf/kernel/runtimes.c
TOY_prof-symd := common/names/runtime/runtime.c tests/skeleton/toy.c
TOY_prof-dump := tools/prof-dump/interpreted.c $(TOY_prof-symd)
TOY_OBJS := $(patsubst %.c,$(TOY)/%.o,$(sort $(TOY_prof-bpf) $(TOY_prof-dump)))
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
	@$(CC) -I$(TOY)/gen $(OUR_CPPFLAGS) $(CPPFLAGS) $(OUR_CFLAGS) $(CFLAGS) \
		-DRUNTIMES_MORE='"tests/skeleton/runtimes.def"' -MMD -MP -c $< -o $@

PROGRAMS += toy/program $(addprefix toy/,$(TOOLS))
toy/program_SRCS := tests/skeleton/program.c
toy/program_LIBS := -rdynamic

define with_toy
toy/$(1)_SRCS := tools/$(1)/main.c
toy/$(1)_OBJS := $(patsubst %.c,$(TOY)/%.o,$(TOY_$(1)))
toy/$(1)_USES := $(1)
endef
$(foreach t,$(TOOLS),$(eval $(call with_toy,$(t))))
