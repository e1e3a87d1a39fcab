# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/lend
fuzz/lend_SRCS := tests/fuzz/lend.c $(addprefix tools/prof-dump/,lend.c half.c)
fuzz/lend_LIBS := $(foreach f,close poll fstat pread recvmsg sendmsg,-Wl,--wrap=$(f))
fuzz/lend_MAX  := 1024
