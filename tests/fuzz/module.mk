# SPDX-License-Identifier: Apache-2.0
# tests/fuzz/PART/NOUN.c is the target fuzz/PART/NOUN. It links PART, a library or a tool, and all
# that PART uses. In an ordinary build it replays tests/fuzz/corpus/NOUN. `make fuzz SECONDS=60`
# builds the targets for libFuzzer (libclang-rt-14-dev) and runs each that long. It leaves findings
# in build/fuzz/found/NOUN/.
FUZZERS  := $(patsubst tests/%.c,%,$(wildcard tests/fuzz/*/*.c))
PROGRAMS += $(FUZZERS)

define fuzzer
$(1)_SRCS := tests/$(1).c $(if $(filter fuzz,$(SAN)),,tests/fuzz/replay.c)
$(1)_USES := $(word 2,$(subst /, ,$(1)))
$(1)_LIBS := $(if $(filter fuzz,$(SAN)),-fsanitize=fuzzer)
endef
$(foreach f,$(FUZZERS),$(eval $(call fuzzer,$(f))))

# Functions that targets replace: memory_file.h, large_blocks.h, build_once.h, fake_peer.h.
MEMORY_FILE  := pread __pread_chk fstat
LARGE_BLOCKS := malloc calloc realloc free
BUILD_ONCE   := msg_build
FAKE_PEER    := $(BUILD_ONCE) bus_listen bus_free bus_connected bus_send bus_recv bus_drop_peer \
                fdlane_listen fdlane_free fdlane_poll fdlane_send lastword_new lastword_read \
                lastword_rest

fuzz/prof-bpf/requests_LIBS  += $(call wrap,$(FAKE_PEER) log_print close memory_begin memory_end)
fuzz/prof-bpf/kallsyms_LIBS  += $(call wrap,open close read __read_chk pread __pread_chk lseek \
                                fcntl fdopen bpf_object__open_skeleton bpf_object__load_skeleton \
                                bpf_object__destroy_skeleton bpf_program__attach_iter \
                                bpf_link__destroy bpf_link__fd bpf_iter_create libbpf_set_print)
fuzz/prof-bpf/record_USES    += prof-symd
fuzz/prof-bpf/row_server_LIBS    += $(call wrap,$(FAKE_PEER))
fuzz/prof-dump/native_walk_SRCS += tests/skeleton/toyjit.c
fuzz/prof-dump/core_LIBS     += $(call wrap,$(MEMORY_FILE))
fuzz/prof-dump/lend_LIBS     += $(call wrap,close poll fstat pread recvmsg sendmsg)
fuzz/prof-export/model_LIBS  += $(call wrap,deflateInit2_)
fuzz/prof-export/otlp_LIBS   += $(call wrap,deflateInit2_)
fuzz/prof-symd/namer_LIBS    += $(call wrap,$(MEMORY_FILE) getrandom)
fuzz/profpipe/child_LIBS     += $(call wrap,read close)
fuzz/names/symfile_LIBS      += $(call wrap,$(MEMORY_FILE))
fuzz/rows/elf_LIBS           += $(call wrap,$(MEMORY_FILE) $(LARGE_BLOCKS))
fuzz/wire/bus_LIBS           += $(call wrap,eventfd read write close poll pthread_cond_wait \
                                pthread_cond_timedwait nng_sleep_aio \
                                $(addprefix nng_aio_,alloc free cancel stop result count \
                                get_output set_iov wait) $(addprefix nng_stream_,send recv close \
                                free get_uint64 listener_alloc listener_set_int listener_listen \
                                listener_accept listener_free dialer_alloc dialer_dial dialer_free))
fuzz/wire/fdlane_LIBS        += $(call wrap,close socket epoll_create1 epoll_ctl bind listen chmod \
                                lstat unlink poll connect getsockopt accept4 recv send recvmsg \
                                sendmsg)

# Small tables, so that short inputs fill them.
ifeq ($(SAN),fuzz)
$(addprefix $(B)/,$(addprefix tools/prof-bpf/kernel/,kallsyms.o ksymbols.o) \
		tests/fuzz/prof-bpf/kallsyms.o): \
	OUR_CPPFLAGS += -DKALLSYMS_CHUNK=2048u -DKSYMBOLS_FIRST=8u -DKSYMBOLS_FIRST_POOL=8192u
endif

# The longest useful input, if it is not 64 KiB.
answer_MAX       := 2048
endpoint_MAX     := 2048
frames_MAX       := 1024
headers_MAX      := 1024
hotspot_MAX      := 2048
spoolfile_MAX    := 128
requests_MAX     := 512
bus_MAX          := 1024
child_MAX        := 512
codeheap_MAX     := 10240
demangle_MAX     := 2048
derive_MAX       := 4096
dwarf_MAX        := 8192
dwarflist_MAX    := 512
dwarfpackage_MAX := 1024
programwire_MAX  := 4096
codewire_MAX     := 4096
ehreturn_MAX     := 2048
fdlane_MAX       := 512
gopclntab_MAX    := 4096
journal_MAX      := 1024
rolled_MAX       := 16384
kallsyms_MAX     := 2048
lend_MAX         := 1024
model_MAX        := 2048
otlp_MAX         := 4096
container_MAX    := 512
key_values_MAX   := 1024
namer_MAX        := 4096
record_MAX       := 4096
row_server_MAX       := 1024
settings_MAX     := 2048
stackcheck_MAX   := 256
stream_MAX       := 4096

SECONDS    ?= 60
define run_fuzzer
.PHONY: fuzz-$(notdir $(1))
fuzz-$(notdir $(1)): $$(B)/$(1)
	@mkdir -p build/fuzz/found/$$(notdir $(1))
	$$< -max_total_time=$$(SECONDS) -max_len=$$(or $$($$(notdir $(1))_MAX),65536) -timeout=10 \
		-rss_limit_mb=1024 -print_final_stats=1 \
		-artifact_prefix=build/fuzz/found/$(notdir $(1))- \
		build/fuzz/found/$$(notdir $(1)) tests/fuzz/corpus/$$(notdir $(1))
endef
ifeq ($(SAN),fuzz)
$(foreach f,$(FUZZERS),$(eval $(call run_fuzzer,$(f))))
fuzz: $(addprefix fuzz-,$(notdir $(FUZZERS)))
else
fuzz $(addprefix fuzz-,$(notdir $(FUZZERS))):
	@$(MAKE) --no-print-directory SAN=fuzz $@
endif
