# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/gopclntab
fuzz/gopclntab_SRCS := tests/fuzz/gopclntab.c
fuzz/gopclntab_MAX  := 4096
