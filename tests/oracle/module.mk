# SPDX-License-Identifier: Apache-2.0
PROGRAMS += tests/cfi-oracle tests/rows-peer tests/libdw-rows
# The oracle prints libdw's reading of a file's call frame information, to be compared with that of
# prof-deltas.
tests/cfi-oracle_SRCS := tests/oracle/cfi-oracle.c
tests/cfi-oracle_USES := base
tests/cfi-oracle_LIBS := -ldw -lelf
# prof-bpf's side of the service, without prof-bpf.
tests/rows-peer_SRCS  := tests/oracle/rows-peer.c
tests/rows-peer_USES  := rows cell
# Measures how fast libdw reads the same rows, for the bench.
tests/libdw-rows_SRCS := tests/oracle/libdw-rows.c
tests/libdw-rows_USES := base
tests/libdw-rows_LIBS := -ldw -lelf
# Lines of code, compared with those of libdw.
PROGRAMS += tests/libdw-lines
tests/libdw-lines_SRCS := tests/oracle/libdw-lines.c
tests/libdw-lines_USES := names
tests/libdw-lines_LIBS := -ldw -lelf
