# All that recognizes runtimes in files and names their frames: for tests, too.
symd_RUNTIMES := $(patsubst %,tools/prof-symd/%.c,runtime python python_version python_state python_loop python_parts python_name python_module elfview memory)

TOOLS += prof-symd
prof-symd_SRCS := $(wildcard tools/prof-symd/*.c)
prof-symd_LIBS := -ldw -lelf -llzma -lz -liberty -lZydis
