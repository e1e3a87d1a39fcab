# SPDX-License-Identifier: Apache-2.0
HELPERS += tests/mkstream
tests/mkstream_SRCS := tests/export/mkstream.c
