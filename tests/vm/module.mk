# SPDX-License-Identifier: Apache-2.0
HELPERS += tests/load-programs
tests/load-programs_SRCS := tests/vm/load-programs.c
tests/load-programs_LIBS := -lbpf
tests/load-programs_GEN := $(B)/gen/sample.skel.h $(RUNTIMES_SKEL) $(B)/gen/ksyms.skel.h
