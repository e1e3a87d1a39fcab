# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/answers
fuzz/answers_SRCS := tests/fuzz/answers.c $(addprefix tools/prof-bpf/,answers.c closing.c deaths.c filesrv.c memory.c opening.c rooted.c sealed.c procfs.c quarantine.c)
fuzz/answers_LIBS := $(FAKE_PEER_WRAP) $(foreach f,log_print close memory_begin memory_end,-Wl,--wrap=$(f))
fuzz/answers_MAX  := 512
