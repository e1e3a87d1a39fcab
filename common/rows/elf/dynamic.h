/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF file's dynamic section says, as far as the special cases ask: its own name and where
 * its symbols lie. Source: the generic ABI (gabi), chapter 5.
 */
#ifndef PROFPIPE_DYNAMIC_H
#define PROFPIPE_DYNAMIC_H

#include "common/rows/elf/elf.h"

struct dynamic {
	uint64_t soname;	       /* offset into names; 0: none */
	bool needs;		       /* other files */
	uint64_t names, names_size;    /* file offset and bytes */
	uint64_t symbols, symbols_end; /* file offsets; the end is where the names begin */
};

/* All zero where there is none that can be read. 0, -errno of reading. */
int dynamic_read(int fd, const struct elf_file *f, struct dynamic *ret);

#endif
