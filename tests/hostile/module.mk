# SPDX-License-Identifier: Apache-2.0
PROGRAMS += tests/hostile-symd tests/hostile-deltas
# A prof-symd that was taken over.
tests/hostile-symd_SRCS   := tests/hostile/symd.c
tests/hostile-symd_USES   := names cell
# A prof-deltas that was taken over.
tests/hostile-deltas_SRCS := tests/hostile/deltas.c
tests/hostile-deltas_USES := cell
