# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/kallsyms
fuzz/kallsyms_SRCS := tests/fuzz/kallsyms.c tools/prof-bpf/kallsyms.c
fuzz/kallsyms_GEN  := $(B)/gen/ksyms.skel.h
fuzz/kallsyms_LIBS := -lz $(foreach f,open close read __read_chk pread __pread_chk lseek fcntl fdopen bpf_object__open_skeleton bpf_object__load_skeleton bpf_object__destroy_skeleton bpf_program__attach_iter bpf_link__destroy bpf_link__fd bpf_iter_create libbpf_set_print,-Wl,--wrap=$(f))
fuzz/kallsyms_FLAGS := -DKALLSYMS_CHUNK=2048u -DFIRST_SYMBOLS=8u -DFIRST_POOL=8192u
fuzz/kallsyms_MAX  := 2048
