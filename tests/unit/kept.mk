# SPDX-License-Identifier: Apache-2.0
UNITS += unit/kept
unit/kept_SRCS := tests/unit/kept.c $(addprefix tools/prof-symd/,kept.c names.c demangle.c $(symd_SYMBOLS)) $(symd_RUNTIMES)
unit/kept_LIBS := -lcriterion -llzma -lz -liberty -lZydis
