# SPDX-License-Identifier: Apache-2.0
# tests/unit/PART/NOUN.c becomes unit/PART/NOUN and links PART, a library or a tool, with all that
# it uses. Only what differs stands here.
UNITS    := $(patsubst tests/%.c,%,$(wildcard tests/unit/*/*.c))
PROGRAMS += $(UNITS)

define unit
$(1)_SRCS := tests/$(1).c
$(1)_USES := $(word 2,$(subst /, ,$(1)))
$(1)_LIBS := -lcriterion
endef
$(foreach u,$(UNITS),$(eval $(call unit,$(u))))

unit/wire/bus_LIBS         += $(call wrap,malloc realloc)
unit/names/jit_LIBS        += $(call wrap,perfmap_feed)
unit/prof-symd/named_LIBS  += $(call wrap,malloc calloc realloc reallocarray)
unit/prof-bpf/kallsyms_LIBS += $(call wrap,malloc)
unit/prof-bpf/rowsrv_LIBS  += $(call wrap,$(FAKE_PEER) stream_feed stream_next)
# The host in a world of files, with tables that only note what they are told.
unit/prof-bpf/host_SRCS    += tests/host/world.c tests/host/fake-tables.c
unit/prof-bpf/host_LIBS    += $(call wrap,maps_new maps_add)
unit/prof-bpf/host_files_SRCS += tests/host/world.c tests/host/fake-tables.c
