# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/stream
fuzz/stream_SRCS := tests/fuzz/stream.c
