# SPDX-License-Identifier: Apache-2.0
# Prints docs/protocol.md from the message table; tests/e2e/test_protocol.py holds the page to it.
# `build/release/tests/print-protocol > docs/protocol.md` renews it.
PROGRAMS += tests/print-protocol
tests/print-protocol_SRCS := tests/protocol/protocol.c
tests/print-protocol_USES := wire
