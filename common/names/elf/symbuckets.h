/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which symbols of a large table may have to do with an address, for some five bytes a symbol: the
 * numbers of the entries, by pieces of the address space of some 32 symbols each. The entries stay
 * in the file, and those of a piece are read when one of its addresses is asked for.
 */
#ifndef PROFPIPE_SYMBUCKETS_H
#define PROFPIPE_SYMBUCKETS_H

#include "common/names/elf/symtable.h"

struct symbuckets;

/* f: borrowed for *ret's life. 0, SYMFILE_NONE (no code), SYMFILE_TOO_LARGE, SYMFILE_MALFORMED,
 * -errno. */
int symbuckets_new(const struct symfile *f, const struct symtable *t, struct symbuckets **ret);
void symbuckets_free(struct symbuckets *b);
/* Adds the symbols that say what is at any address from *ret_from up to *ret_to, of which `address`
 * is one; of others, further away, it may add some. 0, SYMFILE_NONE: no code is there;
 * SYMFILE_TOO_LARGE: too many of them; -errno. */
int symbuckets_gather(const struct symbuckets *b, uint64_t address, struct symbols *all,
		      uint64_t *ret_from, uint64_t *ret_to);
size_t symbuckets_bytes(const struct symbuckets *b);

#endif
