# SPDX-License-Identifier: Apache-2.0
PROGRAMS += tests/hostile-symd tests/hostile-deltas
# A prof-symd that was taken over.
tests/hostile-symd_SRCS   := tests/hostile/symd.c tests/hostile/crawl.c
tests/hostile-symd_USES   := names cell
# A prof-deltas that was taken over.
tests/hostile-deltas_SRCS := tests/hostile/deltas.c
tests/hostile-deltas_USES := cell
# prof-symd, honest towards prof-bpf, but with falsified output for prof-export.
PROGRAMS += tests/false-symd
tests/false-symd_SRCS := tests/hostile/falsify.c tools/prof-symd/main.c
tests/false-symd_USES := prof-symd
tests/false-symd_LIBS := $(call wrap,stream_put)
tests/false-symd_GEN  := $(prof-symd_GEN)
