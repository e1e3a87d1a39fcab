# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/kernel
fuzz/kernel_SRCS := tests/fuzz/kernel.c tools/prof-bpf/kernel.c
