# SPDX-License-Identifier: Apache-2.0
UNITS += unit/emit
unit/emit_SRCS := tests/unit/emit.c tools/prof-bpf/emit.c tools/prof-bpf/intern.c tools/prof-bpf/weave.c
unit/emit_LIBS := -lcriterion
