# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/image
fuzz/image_SRCS := tests/fuzz/image.c tools/prof-dump/image.c
