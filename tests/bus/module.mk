HELPERS += tests/drop-peers tests/unruly-peers
tests/drop-peers_SRCS := tests/bus/drop-peers.c
tests/unruly-peers_SRCS := tests/bus/unruly-peers.c
