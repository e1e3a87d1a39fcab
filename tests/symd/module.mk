# SPDX-License-Identifier: Apache-2.0
# Both neighbours of prof-symd, for its tests.
PROGRAMS += tests/symd-peer
tests/symd-peer_SRCS := tests/symd/peer.c
tests/symd-peer_USES := wire
