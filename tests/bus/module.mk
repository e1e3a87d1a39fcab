HELPERS += tests/drop-peers
tests/drop-peers_SRCS := tests/bus/drop-peers.c
