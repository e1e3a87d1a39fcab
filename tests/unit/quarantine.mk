# SPDX-License-Identifier: Apache-2.0
UNITS += unit/quarantine
unit/quarantine_SRCS := tests/unit/quarantine.c tools/prof-bpf/quarantine.c
unit/quarantine_LIBS := -lcriterion
