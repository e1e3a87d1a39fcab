# SPDX-License-Identifier: Apache-2.0
HELPERS += tests/host-watch
tests/host-watch_SRCS := tests/host/host-watch.c tests/host/fake-tables.c $(addprefix tools/prof-bpf/,sideband.c procfs.c opener.c closing.c opening.c rooted.c sealed.c maps.c displaced.c files.c processes.c publish.c bootclock.c host.c)
HELPERS += tests/host-programs
tests/host-programs_SRCS := tests/host/host-programs.c
