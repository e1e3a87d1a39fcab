UNITS += unit/host_files
unit/host_files_SRCS := tests/unit/host_files.c tests/host/world.c tests/host/fake-tables.c $(addprefix tools/prof-bpf/,procfs.c maps.c displaced.c files.c closing.c processes.c publish.c bootclock.c host.c)
unit/host_files_LIBS := -lcriterion
