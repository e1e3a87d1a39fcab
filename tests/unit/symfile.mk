# SPDX-License-Identifier: Apache-2.0
UNITS += unit/symfile
unit/symfile_SRCS := tests/unit/symfile.c tools/prof-symd/symfile.c tools/prof-symd/gaps.c tools/prof-symd/demangle.c
unit/symfile_LIBS := -lcriterion -llzma -lz -liberty
