# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/tally
fuzz/tally_SRCS := tests/fuzz/tally.c tools/profpipe/tally.c
