# SPDX-License-Identifier: Apache-2.0
UNITS += unit/kernel
unit/kernel_SRCS := tests/unit/kernel.c tools/prof-bpf/kernel.c
unit/kernel_LIBS := -lcriterion
