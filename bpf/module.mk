# RUNTIMES: the names in runtimes.def. Two generated headers include all their programs and all
# their walks: in C, no macro can make an #include of a name.
RUNTIMES := $(shell sed -n 's/^RUNTIME.[0-9]*, [A-Z0-9_]*, \([a-z0-9_]*\),.*/\1/p' bpf/runtimes.def)
RUNTIMES_SKEL := $(B)/gen/runtimes.skel.h
RUNTIMES_WALK := $(B)/gen/runtimes_walk.h

$(RUNTIMES_SKEL): bpf/runtimes.def $(RUNTIMES:%=$(B)/gen/%.skel.h)
	@mkdir -p $(@D)
	@printf '#include "%s.skel.h"\n' $(RUNTIMES) > $@

$(RUNTIMES_WALK): bpf/runtimes.def
	@mkdir -p $(@D)
	@printf '#include "bpf/%s_walk.h"\n' $(RUNTIMES) > $@
