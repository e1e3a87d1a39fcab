# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/procfs
fuzz/procfs_SRCS := tests/fuzz/procfs.c tools/prof-bpf/procfs.c tools/prof-bpf/sideband.c
