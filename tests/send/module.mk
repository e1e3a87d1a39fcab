# SPDX-License-Identifier: Apache-2.0
# prof-export, as prof-send sees it.
PROGRAMS += tests/feed
tests/feed_SRCS := tests/send/feed.c
tests/feed_USES := wire
