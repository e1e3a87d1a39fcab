# SPDX-License-Identifier: Apache-2.0
UNITS += unit/python
unit/python_SRCS := tests/unit/python.c tools/prof-symd/symfile.c tools/prof-symd/gaps.c tools/prof-symd/demangle.c $(symd_RUNTIMES)
unit/python_LIBS := -lcriterion -llzma -lz -liberty -lZydis
