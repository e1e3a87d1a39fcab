# What libdw thinks of a file's call frame information, held against what prof-deltas printed.
HELPERS += tests/cfi-oracle
tests/cfi-oracle_SRCS := tests/oracle/cfi-oracle.c
tests/cfi-oracle_LIBS := -ldw -lelf
