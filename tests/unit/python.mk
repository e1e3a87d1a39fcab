# SPDX-License-Identifier: Apache-2.0
UNITS += unit/python
unit/python_SRCS := tests/unit/python.c $(addprefix tools/prof-symd/,$(symd_SYMBOLS) demangle.c) $(symd_RUNTIMES)
unit/python_LIBS := -lcriterion -llzma -lz -liberty -lZydis
