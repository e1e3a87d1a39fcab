# SPDX-License-Identifier: Apache-2.0
# Prints docs/protocol.md from the message table; tests/e2e/test_protocol.py compares them.
# `build/release/tests/print-protocol > docs/protocol.md` renews the page.
PROGRAMS += tests/print-protocol
tests/print-protocol_SRCS := tests/protocol/protocol.c
tests/print-protocol_USES := wire
