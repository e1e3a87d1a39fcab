# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/interpreted
fuzz/interpreted_SRCS := tests/fuzz/interpreted.c tools/prof-dump/interpreted.c tools/prof-bpf/weave.c
fuzz/interpreted_GEN := $(RUNTIMES_WALK)
