/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function's symbol an address has: the rules of symfile.h, over all symbols of a file
 * (symtable.h).
 */
#ifndef PROFPIPE_SYMINDEX_H
#define PROFPIPE_SYMINDEX_H

#include "tools/prof-symd/symfile.h"

struct symindex;

#define SYMINDEX_LARGE 65536u

/* f: borrowed for *ret's life. large: entries of .symtab from which on it is not held whole. What
 * is wrong with its tables lookups say. 0, -ENOMEM. */
int symindex_new(const struct symfile *f, uint64_t large, struct symindex **ret);
void symindex_free(struct symindex *x);
/* As symfile_lookup. */
int symindex_lookup(struct symindex *x, uint64_t address, char ret_name[static SYMFILE_NAME]);
/* Where the last symbol ends that ends at or before an address; 0: none does. */
uint64_t symindex_floor(struct symindex *x, uint64_t address);
/* Bytes of memory held. */
size_t symindex_bytes(const struct symindex *x);

#endif
