HELPERS += tests/walk-pid
tests/walk-pid_SRCS := tests/walker/walk-pid.c tools/prof-bpf/tables.c \
	$(addprefix tools/prof-deltas/,rows.c cfi.c expr.c elf.c extract.c)
tests/walk-pid_LIBS := -lbpf -lelf -lz
