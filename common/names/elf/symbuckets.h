/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of a large symbol table, for some five bytes of memory per symbol. A bucket is a piece of
 * the address space with some 32 symbols, and has the numbers of their entries. The entries stay in
 * the file; a lookup reads those of one bucket.
 */
#ifndef COMMON_NAMES_ELF_SYMBUCKETS_H
#define COMMON_NAMES_ELF_SYMBUCKETS_H

#include "common/names/elf/symtable.h"

struct symbuckets;

/* f is borrowed until symbuckets_free. 0, SYMFILE_NONE (no code), SYMFILE_TOO_LARGE,
 * SYMFILE_MALFORMED, -errno. */
int symbuckets_new(const struct symfile *f, const struct symtable *t, struct symbuckets **ret);
void symbuckets_free(struct symbuckets *b);
/* Adds all symbols that matter for the addresses from *ret_from up to *ret_to, which include
 * `address`. May add further ones. 0, SYMFILE_NONE: there is no code; SYMFILE_TOO_LARGE: too many
 * symbols; -errno. */
int symbuckets_gather(const struct symbuckets *b, uint64_t address, struct symtable_symbols *all,
		      uint64_t *ret_from, uint64_t *ret_to);
size_t symbuckets_bytes(const struct symbuckets *b);

#endif
