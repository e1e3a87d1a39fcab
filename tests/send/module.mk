# SPDX-License-Identifier: Apache-2.0
# A stand-in for prof-export in tests of prof-send.
PROGRAMS += tests/feed
tests/feed_SRCS := tests/send/feed.c
tests/feed_USES := wire
