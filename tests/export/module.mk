# SPDX-License-Identifier: Apache-2.0
PROGRAMS += tests/mkstream
tests/mkstream_SRCS := tests/export/mkstream.c
tests/mkstream_USES := wire
