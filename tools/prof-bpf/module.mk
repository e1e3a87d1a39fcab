# The unwind tables: for walks in user space, too.
tables_PARTS := $(patsubst %,tools/prof-bpf/%.c,tables victims rules incoming slabs array)

TOOLS += prof-bpf
prof-bpf_SRCS := $(wildcard tools/prof-bpf/*.c)
prof-bpf_LIBS := -lbpf -lz
prof-bpf_GEN := $(B)/gen/sample.skel.h $(RUNTIMES_SKEL) $(B)/gen/ksyms.skel.h
