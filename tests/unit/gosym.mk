# SPDX-License-Identifier: Apache-2.0
UNITS += unit/gosym
unit/gosym_SRCS := tests/unit/gosym.c $(addprefix tools/prof-symd/,gosym.c names.c $(symd_SYMBOLS) demangle.c)
unit/gosym_LIBS := -lcriterion -llzma -lz -liberty -lZydis
