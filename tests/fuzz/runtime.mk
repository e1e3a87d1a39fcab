# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/runtime
fuzz/runtime_SRCS := tests/fuzz/runtime.c $(addprefix tools/prof-symd/,$(symd_SYMBOLS) demangle.c) $(symd_RUNTIMES)
fuzz/runtime_LIBS := -llzma -lz -liberty -lZydis
