# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/msg
fuzz/msg_SRCS := tests/fuzz/msg.c
