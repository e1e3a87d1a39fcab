# SPDX-License-Identifier: Apache-2.0
# RUNTIMES: the names in runtimes.def. Two generated headers include all their programs and all
# their walks: in C, no macro can make an #include of a name.
RUNTIMES := $(shell sed -n 's/^RUNTIME.[0-9]*, [A-Z0-9_]*, \([a-z0-9_]*\),.*/\1/p' bpf/runtimes.def)
RUNTIMES_SKEL := $(B)/gen/runtimes.skel.h
RUNTIMES_WALK := $(B)/gen/runtimes_walk.h

# The program of a runtime is in a folder of its own.
$(RUNTIMES:%=$(B)/gen/%.bpf.o): $(B)/gen/%.bpf.o: bpf/$$*/$$*.bpf.c $$(BPF_HEADERS)
	@mkdir -p $(@D)
	@echo "  BPF     $<"
	@$(COMPILE_BPF)

$(RUNTIMES_SKEL): bpf/runtimes.def $(RUNTIMES:%=$(B)/gen/%.skel.h)
	@mkdir -p $(@D)
	@printf '#include "%s.skel.h"\n' $(RUNTIMES) > $@

$(RUNTIMES_WALK): bpf/runtimes.def bpf/module.mk
	@mkdir -p $(@D)
	@printf '#include "bpf/%s/%s_walk.h"\n' $(foreach r,$(RUNTIMES),$(r) $(r)) > $@
