# SPDX-License-Identifier: Apache-2.0
# The skeletons of two runtimes, in tools of their own under toy/. The files that include
# bpf/runtimes.def are compiled again with the skeletons' lines added; all others are profpipe's.
TOY      := $(B)/toy
TOY_prof-bpf  := tools/prof-bpf/peers/requests.c tools/prof-bpf/kernel/runtimes.c \
                 common/walk/native_walk.c
TOY_prof-symd := common/names/runtime/registry.c tests/skeleton/toy.c tests/skeleton/toyjit.c
TOY_prof-dump := tools/prof-dump/space/interpreted.c common/walk/native_walk.c $(TOY_prof-symd)
toy_objects = $(patsubst %.c,$(TOY)/%.o,$(1))
TOY_OBJS := $(call toy_objects,$(sort $(TOY_prof-bpf) $(TOY_prof-dump)))
TOY_GEN  := $(TOY)/gen/runtimes.skel.h $(TOY)/gen/runtimes_walk.h

TOY_RUNTIMES := $(shell sed -n 's/^RUNTIME.[0-9]*, [A-Z]*, \([a-z]*\),.*/\1/p' \
                        tests/skeleton/runtimes.def)

$(TOY_RUNTIMES:%=$(B)/gen/%.bpf.o): $(B)/gen/%.bpf.o: tests/skeleton/%.bpf.c \
		$(wildcard tests/skeleton/*.h bpf/*.h bpf/*/*.h bpf/*.def)
	@mkdir -p $(@D)
	@echo "  BPF     $<"
	@$(COMPILE_BPF)

$(TOY)/gen/runtimes.skel.h: $(RUNTIMES_SKEL) tests/skeleton/runtimes.def \
		$(TOY_RUNTIMES:%=$(B)/gen/%.skel.h)
	@mkdir -p $(@D)
	@(cat $<; printf '#include "%s.skel.h"\n' $(TOY_RUNTIMES)) > $@

$(TOY)/gen/runtimes_walk.h: $(RUNTIMES_WALK) tests/skeleton/runtimes.def
	@mkdir -p $(@D)
	@(cat $<; printf '#include "tests/skeleton/%s_walk.h"\n' $(TOY_RUNTIMES)) > $@

$(TOY_OBJS): $(TOY)/%.o: %.c $(TOY_GEN)
	@mkdir -p $(@D)
	@echo "  CC      $< (with the toy)"
	@$(CC) -I$(TOY)/gen $(OUR_CPPFLAGS) $(CPPFLAGS) $(OUR_CFLAGS) $(CFLAGS) \
		-DRUNTIMES_MORE='"tests/skeleton/runtimes.def"' -MMD -MP -c $< -o $@

PROGRAMS += toy/program toy/chains toy/toyjit toy/toyjit-loop \
            toy/shared toy/ruled $(addprefix toy/,$(TOOLS))
toy/program_SRCS := tests/skeleton/program.c
toy/program_LIBS := -rdynamic
# The same, but the loop shows where its chains are.
toy/chains_OBJS := $(TOY)/program-chains.o
toy/chains_LIBS := -rdynamic
# Memory that misleads the walks of both.
PROGRAMS += toy/hostile toy/toyjit-hostile
toy/hostile_SRCS := tests/skeleton/hostile_program.c
toy/hostile_LIBS := -rdynamic
toy/toyjit-hostile_OBJS := $(TOY)/hostile_program-jit.o
toy/toyjit-hostile_LIBS := -rdynamic
$(TOY)/hostile_program-jit.o: OUR_CPPFLAGS += -DTOYJIT_HOSTILE
$(TOY)/hostile_program-jit.o: tests/skeleton/hostile_program.c
# Code without frames of its own; its place or a rule describes its frame.
toy/shared_SRCS := tests/skeleton/shared_program.c
toy/shared_LIBS := -rdynamic
toy/ruled_OBJS := $(TOY)/shared_program-rule.o
toy/ruled_LIBS := -rdynamic
$(TOY)/program-chains.o: OUR_CPPFLAGS += -DTOY_CHAINS
$(TOY)/program-chains.o: tests/skeleton/program.c
$(TOY)/shared_program-rule.o: OUR_CPPFLAGS += -DTOYJIT_RULE
$(TOY)/shared_program-rule.o: tests/skeleton/shared_program.c
$(TOY)/toyjit_program-loop.o: OUR_CPPFLAGS += -DTOYJIT_LOOP
$(TOY)/toyjit_program-loop.o: tests/skeleton/toyjit_program.c
$(TOY)/program-chains.o $(TOY)/shared_program-rule.o $(TOY)/toyjit_program-loop.o \
$(TOY)/hostile_program-jit.o:
	@mkdir -p $(@D)
	@echo "  CC      $@"
	@$(COMPILE) -c $< -o $@
# Its name is that of its runtime, so it is described as soon as it is mapped.
toy/toyjit_SRCS := tests/skeleton/toyjit_program.c
toy/toyjit_LIBS := -rdynamic -ldl
# The same, but its runtime also takes frames of the function that enters the code.
toy/toyjit-loop_OBJS := $(TOY)/toyjit_program-loop.o
toy/toyjit-loop_LIBS := -rdynamic -ldl

# The stacks of these programs by single steps.
PROGRAMS += toy/step
toy/step_SRCS := tests/walker/step.c tests/walker/shadow.c tests/walker/process.c
toy/step_OBJS := $(call toy_objects,$(TOY_prof-dump))
toy/step_USES := prof-dump

# Their stacks in the kernel, also where the tools are too slow (tests/e2e/test_vm.py).
PROGRAMS += toy/live
toy/live_SRCS := tests/skeleton/live.c tests/walker/process.c
toy/live_OBJS := $(call toy_objects,$(sort $(TOY_prof-dump) $(TOY_prof-bpf)))
toy/live_USES := prof-dump prof-bpf

define with_toy
toy/$(1)_SRCS := tools/$(1)/main.c
toy/$(1)_OBJS := $(call toy_objects,$(TOY_$(1)))
toy/$(1)_USES := $(1)
endef
$(foreach t,$(TOOLS),$(eval $(call with_toy,$(t))))
