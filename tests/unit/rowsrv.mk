# SPDX-License-Identifier: Apache-2.0
UNITS += unit/rowsrv
unit/rowsrv_SRCS := tests/unit/rowsrv.c $(addprefix tools/prof-bpf/,rowsrv.c closing.c quarantine.c) $(tables_PARTS)
unit/rowsrv_LIBS = -lbpf -lcriterion $(FAKE_PEER_WRAP) $(foreach f,stream_feed stream_next,-Wl,--wrap=$(f))
