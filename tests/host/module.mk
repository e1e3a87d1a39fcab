# SPDX-License-Identifier: Apache-2.0
PROGRAMS += tests/host-watch tests/host-programs
tests/host-watch_SRCS    := tests/host/host-watch.c tests/host/each_mapping.c \
                            tests/host/fake-tables.c
tests/host-watch_USES    := prof-bpf
tests/host-programs_SRCS := tests/host/host-programs.c
