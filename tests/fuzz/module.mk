# SPDX-License-Identifier: Apache-2.0
# One target per untrusted input: tests/fuzz/<noun>.mk adds fuzz/<noun> to FUZZERS and says what it links. In an ordinary build it replays tests/fuzz/corpus/<noun>;
# `make fuzz SECONDS=60` builds it again for libFuzzer (libclang-rt-14-dev) and runs each for that long. What it finds is kept in build/fuzz/<noun>/.

# For targets with memory_file.h, large_blocks.h, schema_once.h (with_schema.h has it), and fake_peer.h.
MEMORY_FILE_WRAP := -Wl,--wrap=pread,--wrap=__pread_chk,--wrap=fstat
LARGE_BLOCKS_WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
SCHEMA_ONCE_WRAP := -Wl,--wrap=msg_schema_hash
FAKE_PEER_WRAP   := $(SCHEMA_ONCE_WRAP) $(foreach f,bus_listen bus_free bus_connected bus_send bus_recv bus_drop_peer fdlane_listen fdlane_free fdlane_poll fdlane_send lastword_new lastword_read,-Wl,--wrap=$(f))

include $(filter-out tests/fuzz/module.mk,$(wildcard tests/fuzz/*.mk))

$(foreach f,$(FUZZERS),$(eval $(f)_SRCS += tests/fuzz/replay.c))

SECONDS    ?= 60
FUZZ_NOUNS := $(FUZZERS:fuzz/%=%)
FUZZ_FLAGS := -std=gnu17 -g -O2 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all

.PHONY: $(FUZZ_NOUNS:%=fuzz-%)

define fuzzer
build/fuzz/$(1)/target: $$(filter-out tests/fuzz/replay.c,$$(fuzz/$(1)_SRCS)) $$(fuzz/$(1)_OBJS) $$(COMMON_SRCS) $$(wildcard common/*.h common/*.def bpf/*.h bpf/*.def tools/*/*.h) | $$(fuzz/$(1)_GEN)
	@mkdir -p $$(@D)/found
	@echo "  FUZZ    $$@"
	@$$(CLANG) $$(CPPFLAGS) $$(FUZZ_FLAGS) $$(fuzz/$(1)_FLAGS) -fsanitize=fuzzer -o $$@ $$(filter %.c %.o,$$^) $$(fuzz/$(1)_LIBS) $$(COMMON_LIBS)

fuzz-$(1): build/fuzz/$(1)/target
	$$< -max_total_time=$$(SECONDS) -max_len=$$(or $$(fuzz/$(1)_MAX),65536) -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
		-artifact_prefix=$$(<D)/ $$(<D)/found $$(wildcard tests/fuzz/corpus/$(1))
endef
$(foreach n,$(FUZZ_NOUNS),$(eval $(call fuzzer,$(n))))

fuzz: $(FUZZ_NOUNS:%=fuzz-%)
