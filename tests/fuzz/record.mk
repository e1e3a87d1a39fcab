# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/record
fuzz/record_SRCS := tests/fuzz/record.c $(patsubst %,tools/prof-bpf/%.c,record weave) $(addprefix tools/prof-symd/,objects.c objects_asking.c kept.c idmap.c names.c $(symd_SYMBOLS) demangle.c) $(symd_RUNTIMES)
fuzz/record_LIBS := -llzma -lz -liberty -lZydis
fuzz/record_MAX  := 4096
