# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/rowsrv
fuzz/rowsrv_SRCS := tests/fuzz/rowsrv.c $(addprefix tools/prof-bpf/,rowsrv.c closing.c quarantine.c) $(tables_PARTS)
fuzz/rowsrv_LIBS := -lbpf $(FAKE_PEER_WRAP)
fuzz/rowsrv_MAX  := 1024
