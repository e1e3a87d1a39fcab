# SPDX-License-Identifier: Apache-2.0
PROGRAMS += tests/drop-peers tests/unruly-peers
tests/drop-peers_SRCS   := tests/bus/drop-peers.c
tests/drop-peers_USES   := wire
tests/unruly-peers_SRCS := tests/bus/unruly-peers.c
tests/unruly-peers_USES := wire
