# SPDX-License-Identifier: Apache-2.0
UNITS += unit/perfmap
unit/perfmap_SRCS := tests/unit/perfmap.c $(addprefix tools/prof-symd/,perfmap.c codemap.c)
unit/perfmap_LIBS := -lcriterion
