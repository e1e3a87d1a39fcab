# SPDX-License-Identifier: Apache-2.0
# A prof-symd that was taken over.
HELPERS += tests/hostile-symd
tests/hostile-symd_SRCS := tests/hostile/symd.c $(addprefix tools/prof-symd/,$(symd_SYMBOLS) demangle.c) $(symd_RUNTIMES)
tests/hostile-symd_LIBS := -llzma -lz -liberty -lZydis

# A prof-deltas.
HELPERS += tests/hostile-deltas
tests/hostile-deltas_SRCS := tests/hostile/deltas.c
