# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/demangle
fuzz/demangle_SRCS := tests/fuzz/demangle.c tools/prof-symd/demangle.c
fuzz/demangle_LIBS := -liberty
fuzz/demangle_MAX := 2048
