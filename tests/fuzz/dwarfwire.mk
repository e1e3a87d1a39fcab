# SPDX-License-Identifier: Apache-2.0
FUZZERS += fuzz/dwarfwire
fuzz/dwarfwire_SRCS := tests/fuzz/dwarfwire.c $(addprefix tools/prof-symd/,dwarfwire.c names.c demangle.c)
fuzz/dwarfwire_LIBS := -liberty
fuzz/dwarfwire_MAX  := 1024
