# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/model
fuzz/model_SRCS := tests/fuzz/model.c $(patsubst %,tools/prof-export/%.c,model lives hot things label twins table paths folded text pprof html output record session)
fuzz/model_OBJS = $(prof-export_OBJS)
fuzz/model_GEN = $(prof-export_GEN)
fuzz/model_LIBS := -lprotobuf-c -lz -Wl,--wrap=deflateInit2_ $(SCHEMA_ONCE_WRAP)
fuzz/model_MAX := 2048
