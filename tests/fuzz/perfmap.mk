# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/perfmap
fuzz/perfmap_SRCS := tests/fuzz/perfmap.c $(addprefix tools/prof-symd/,perfmap.c codemap.c)
