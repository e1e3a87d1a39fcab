# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/python
fuzz/python_SRCS := tests/fuzz/python.c $(addprefix tools/prof-symd/,$(symd_SYMBOLS) demangle.c) $(symd_RUNTIMES)
fuzz/python_LIBS := -llzma -lz -liberty -lZydis
