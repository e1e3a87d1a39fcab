/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relocations of a program, by the address that they write to. Linkers sort most of them. These
 * stay in the file, of which a window is read, since a browser has a million. The others are read
 * and sorted.
 */
#ifndef COMMON_NAMES_ELF_RELAS_H
#define COMMON_NAMES_ELF_RELAS_H

#include <elf.h>
#include <stdbool.h>
#include "common/names/elf/symfile.h"

/* Zero-initialise. */
struct relas {
	bool tried;
	uint64_t sorted_at; /* file offset of the sorted ones */
	size_t sorted;	    /* number of the sorted ones */
	Elf64_Rela *window; /* owned */
	size_t window_from, window_count;
	Elf64_Rela *rest; /* owned */
	size_t rest_count;
};

void relas_done(struct relas *r);

/* Called for one relocation, which is borrowed. If it returns anything but 0, the search ends with
 * this result. */
typedef int (*relas_each)(void *ctx, const Elf64_Rela *rela);

/* Calls `each` for the relocations of a file that write to addresses from `from` to below `to`.
 * Returns 0, SYMFILE_TOO_LARGE, -ENOMEM, errors of reading the file, or a result of `each`. */
int relas_within(struct relas *r, const struct symfile *f, uint64_t from, uint64_t to,
		 relas_each each, void *ctx);
/* Like relas_within, for all relocations. */
int relas_all(struct relas *r, const struct symfile *f, relas_each each, void *ctx);

#endif
