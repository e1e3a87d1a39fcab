# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/fdlane
fuzz/fdlane_SRCS := tests/fuzz/fdlane.c
fuzz/fdlane_LIBS := $(foreach f,close socket epoll_create1 epoll_ctl bind listen chmod lstat unlink poll connect getsockopt accept4 recv send recvmsg sendmsg,-Wl,--wrap=$(f))
fuzz/fdlane_MAX  := 512
