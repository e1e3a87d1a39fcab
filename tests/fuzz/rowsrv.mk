# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/rowsrv
fuzz/rowsrv_SRCS := tests/fuzz/rowsrv.c $(addprefix tools/prof-bpf/,rowsrv.c quarantine.c) $(tables_PARTS)
# What rows_pipe.h has in place of the bus and the lane.
rows_pipe_LIBS := $(foreach f,bus_listen bus_free bus_connected bus_send bus_recv bus_drop_peer fdlane_listen fdlane_free fdlane_poll fdlane_send lastword_new lastword_read,-Wl,--wrap=$(f))
fuzz/rowsrv_LIBS := -lbpf $(rows_pipe_LIBS)
fuzz/rowsrv_MAX  := 1024
