UNITS += unit/host
unit/host_SRCS := tests/unit/host.c tests/host/world.c tests/host/fake-tables.c $(addprefix tools/prof-bpf/,procfs.c maps.c displaced.c files.c closing.c processes.c publish.c bootclock.c host.c)
unit/host_LIBS := -lcriterion -Wl,--wrap=maps_new,--wrap=maps_add
