# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/bus
fuzz/bus_SRCS := tests/fuzz/bus.c
fuzz/bus_LIBS := $(foreach f,eventfd read write close poll pthread_cond_wait pthread_cond_timedwait nng_sleep_aio $(addprefix nng_aio_,alloc free cancel stop result count get_output set_iov wait) $(addprefix nng_stream_,send recv close free get_uint64 listener_alloc listener_set_int listener_listen listener_accept listener_free dialer_alloc dialer_dial dialer_free),-Wl,--wrap=$(f))
fuzz/bus_MAX  := 1024
