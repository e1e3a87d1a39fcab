# SPDX-License-Identifier: Apache-2.0
UNITS += unit/jit
unit/jit_SRCS := tests/unit/jit.c $(addprefix tools/prof-symd/,jit.c jitfinder.c idmap.c names.c demangle.c perfmap.c jitdump.c codemap.c)
unit/jit_LIBS := -Wl,--wrap=perfmap_feed -lcriterion -liberty
