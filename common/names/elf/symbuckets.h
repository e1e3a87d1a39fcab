/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of a large symbol table, which take about five bytes of memory per symbol. A bucket is a
 * piece of the address space with about 32 symbols, and holds the numbers of their entries. The
 * entries stay in the file; a lookup reads those of one bucket.
 */
#ifndef COMMON_NAMES_ELF_SYMBUCKETS_H
#define COMMON_NAMES_ELF_SYMBUCKETS_H

#include "common/names/elf/symtable.h"

struct symbuckets;

/* Reads the table and makes the buckets. f is borrowed until symbuckets_free. Returns 0,
 * SYMFILE_NONE (no code), SYMFILE_TOO_LARGE, SYMFILE_MALFORMED or -errno. */
int symbuckets_new(const struct symfile *f, const struct symtable *t, struct symbuckets **ret);
void symbuckets_free(struct symbuckets *b);
/* Adds all symbols that a lookup needs for addresses in [*ret_from, *ret_to), which contains
 * `address`. May add others. Returns 0, SYMFILE_NONE (no code), SYMFILE_TOO_LARGE (too many
 * symbols), SYMFILE_MALFORMED (the file is shorter now) or -errno. */
int symbuckets_gather(const struct symbuckets *b, uint64_t address, struct symtable_symbols *all,
		      uint64_t *ret_from, uint64_t *ret_to);
size_t symbuckets_bytes(const struct symbuckets *b);

#endif
