# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/dwarflist
fuzz/dwarflist_SRCS := tests/fuzz/dwarflist.c tools/prof-symd/dwarflist.c
fuzz/dwarflist_MAX  := 512
