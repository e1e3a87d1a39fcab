# What libdw thinks of a file's call frame information, held against what prof-deltas printed.
HELPERS += tests/cfi-oracle
tests/cfi-oracle_SRCS := tests/oracle/cfi-oracle.c
tests/cfi-oracle_LIBS := -ldw -lelf

# prof-bpf's side of the service, without prof-bpf.
HELPERS += tests/rows-peer
tests/rows-peer_SRCS := tests/oracle/rows-peer.c tools/prof-deltas/print.c tools/prof-deltas/rows.c

# How fast libdw goes through the same rows, for the bench.
HELPERS += tests/libdw-rows
tests/libdw-rows_SRCS := tests/oracle/libdw-rows.c
tests/libdw-rows_LIBS := -ldw -lelf
