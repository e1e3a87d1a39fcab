/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an ELF file's dynamic section that special cases need: the file's own name, and the
 * place of its symbols. Source: the generic ABI (gabi), chapter 5.
 */
#ifndef COMMON_ROWS_ELF_DYNAMIC_H
#define COMMON_ROWS_ELF_DYNAMIC_H

#include "common/rows/elf/elf.h"

struct dynamic {
	uint64_t soname;	       /* offset into names; 0: none */
	bool needs;		       /* it needs other files */
	uint64_t names, names_size;    /* file offset, bytes */
	uint64_t symbols, symbols_end; /* file offsets; symbols end where the names begin */
};

/* Reads the dynamic section. *ret is all zero if the file has none, or none that can be read.
 * Returns 0 or -errno of reading. */
int dynamic_read(int fd, const struct elf_file *f, struct dynamic *ret);

#endif
