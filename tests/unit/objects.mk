# SPDX-License-Identifier: Apache-2.0
UNITS += unit/objects
unit/objects_SRCS := tests/unit/objects.c $(addprefix tools/prof-symd/,objects.c objects_asking.c kept.c idmap.c names.c $(symd_SYMBOLS) demangle.c) $(symd_RUNTIMES)
unit/objects_LIBS := -lcriterion -llzma -lz -liberty -lZydis
