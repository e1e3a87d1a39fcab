# SPDX-License-Identifier: Apache-2.0
PROGRAMS += tests/load-programs
tests/load-programs_SRCS := tests/vm/load-programs.c
tests/load-programs_LIBS := -lbpf
tests/load-programs_GEN  := $(prof-bpf_GEN)
