# SPDX-License-Identifier: Apache-2.0
UNITS += unit/symfile
unit/symfile_SRCS := tests/unit/symfile.c $(addprefix tools/prof-symd/,$(symd_SYMBOLS) demangle.c)
unit/symfile_LIBS := -lcriterion -llzma -lz -liberty -lZydis
