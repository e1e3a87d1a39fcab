# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/stream
fuzz/stream_SRCS := tests/fuzz/stream.c
fuzz/stream_LIBS := $(SCHEMA_ONCE_WRAP)
fuzz/stream_MAX  := 4096
