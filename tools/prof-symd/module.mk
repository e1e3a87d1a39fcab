TOOLS += prof-symd
prof-symd_SRCS := $(wildcard tools/prof-symd/*.c)
prof-symd_LIBS := -ldw -lelf -llzma -lz -liberty -lZydis
