# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/jitdump
fuzz/jitdump_SRCS := tests/fuzz/jitdump.c $(addprefix tools/prof-symd/,jitdump.c codemap.c)
