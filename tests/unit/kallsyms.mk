UNITS += unit/kallsyms
unit/kallsyms_SRCS := tests/unit/kallsyms.c tools/prof-bpf/kallsyms.c
unit/kallsyms_GEN := $(B)/gen/ksyms.skel.h
unit/kallsyms_LIBS := -lbpf -lz -lcriterion -Wl,--wrap=malloc
