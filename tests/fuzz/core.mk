# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/core
fuzz/core_SRCS := tests/fuzz/core.c tools/prof-dump/core.c
fuzz/core_LIBS := $(MEMORY_FILE_WRAP)
