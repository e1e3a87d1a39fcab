# Both neighbours of prof-symd, for its tests.
HELPERS += tests/symd-peer
tests/symd-peer_SRCS := tests/symd/peer.c
