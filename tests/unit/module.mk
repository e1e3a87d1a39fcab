# SPDX-License-Identifier: Apache-2.0
# tests/unit/PART/NOUN.c becomes unit/PART/NOUN and links PART, a library or a tool, with all that
# it uses. Only exceptions are listed here.
UNITS    := $(patsubst tests/%.c,%,$(wildcard tests/unit/*/*.c))
PROGRAMS += $(UNITS)

define unit
$(1)_SRCS := tests/$(1).c
$(1)_USES := $(word 2,$(subst /, ,$(1)))
$(1)_LIBS := -lcriterion -Wl,--disable-new-dtags,-rpath,'$$$$ORIGIN/../fake'
$(B)/$(1): | $(B)/unit/fake/libgit2
endef
$(foreach u,$(UNITS),$(eval $(call unit,$(u))))

# The folders of tests/data that the tests read, as TEST=FOLDER.
UNIT_DATA := $(shell grep -roE '"tests/(data/[a-z]+|unit/[^"]+\.h)' --include='*.[ch]' \
               tests/unit | awk -f tests/unit/data.awk)

# Criterion finds this library in place of the system's, whatever its version.
$(B)/unit/fake/libgit2: tests/unit/fake_libgit2.c
	@mkdir -p $(@D)
	@$(CC) -O2 -shared -fPIC -o $@ $<
	@criterion=$$($(CC) -print-file-name=libcriterion.so); \
	name=$$(objdump -p "$$criterion" | awk '/NEEDED.*libgit2/ { print $$2 }'); \
	[ -z "$$name" ] || ln -sf libgit2 $(@D)/$$name

unit/walk/tables_processes_LIBS += $(call wrap,bpf_map_update_elem bpf_map_delete_elem \
                                   bpf_map_lookup_batch)
unit/wire/bus_LIBS         += $(call wrap,malloc realloc)
unit/names/jit_LIBS        += $(call wrap,perfmap_feed)
unit/names/codereader_LIBS += $(call wrap,perfmap_feed codereader_find)
unit/names/filecrc_LIBS    += $(call wrap,symfile_read)
$(eval $(call otlp_rules,unit/prof-export/otlp))
unit/prof-symd/namer_LIBS  += $(call wrap,malloc calloc realloc reallocarray program_expect)
unit/prof-bpf/kallsyms_LIBS += $(call wrap,malloc)
unit/profpipe/service_LIBS += $(call wrap,contents_read settings_parse)
unit/prof-bpf/statuses_LIBS    += $(call wrap,clock_gettime)
unit/prof-bpf/workerpool_LIBS  += $(call wrap,procfs_read_stat)
unit/prof-bpf/row_server_LIBS  += $(call wrap,$(FAKE_PEER) stream_feed stream_next malloc calloc \
                                realloc reallocarray)
# The host in a simulated world, with tables that only record calls.
HOST_UNITS := $(filter unit/prof-bpf/host unit/prof-bpf/host_%,$(UNITS))
$(foreach u,$(HOST_UNITS),$(eval $(u)_SRCS += tests/host/world.c tests/host/fake-tables.c))
unit/prof-bpf/host_lacks_LIBS += $(call wrap,maps_new maps_add)
# A libdw that misbehaves.
$(foreach u,program fileworker filekeeper,$(eval unit/names/$(u)_SRCS += tests/unit/fake_libdw.c))
