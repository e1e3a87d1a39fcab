# SPDX-License-Identifier: Apache-2.0
UNITS += unit/cpus
unit/cpus_SRCS := tests/unit/cpus.c tools/prof-bpf/cpus.c
unit/cpus_LIBS := -lcriterion
