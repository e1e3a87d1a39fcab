# SPDX-License-Identifier: Apache-2.0
UNITS += unit/reader
unit/reader_SRCS := tests/unit/reader.c tools/prof-bpf/reader.c tools/prof-bpf/closing.c
unit/reader_LIBS := -lcriterion
