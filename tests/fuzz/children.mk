# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/children
fuzz/children_SRCS := tests/fuzz/children.c $(addprefix tools/profpipe/,children.c summary.c)
fuzz/children_LIBS := -lcjson -Wl,--wrap=read -Wl,--wrap=close
fuzz/children_MAX  := 512
