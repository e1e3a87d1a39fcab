/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function's symbol an address has, of all symbols of a file (symtable.h). The rules (System
 * V gABI, chapter 4, "Symbol Table"):
 *
 *  - Only STT_FUNC, STT_GNU_IFUNC and STT_NOTYPE of an executable section count, and only with a
 *    name. A symbol never reaches beyond its section.
 *  - A symbol with a size covers exactly that. Of several that cover an address, the one that
 *    starts last wins. Of those that start together a function wins over an untyped symbol, then
 *    one that other files see (global or weak) over a local one, then the smaller one. Of aliases
 *    that are equal in all that, the one with the fewest underscores before it wins (`malloc`, not
 *    `__libc_malloc`), then the shortest, both as demangled, then the first in the order of bytes.
 *  - A symbol without a size (hand-written assembly) covers the room up to the next symbol of
 *    any kind, or to its section's end, unless it starts inside a symbol that has a size. It
 *    never takes an address from a symbol that has one.
 *  - .symtab is used alone where there is one, else .dynsym together with the .symtab inside
 *    .gnu_debugdata (MiniDebugInfo).
 */
#ifndef PROFPIPE_SYMINDEX_H
#define PROFPIPE_SYMINDEX_H

#include "common/names/elf/symfile.h"

struct symindex;

#define SYMINDEX_LARGE 65536u

/* f: borrowed for *ret's life. large: entries of .symtab from which on it is not held whole
 * (SYMINDEX_LARGE but in tests). The first lookup reads the tables, and lookups tell what is wrong
 * with them. 0, -ENOMEM. */
int symindex_new(const struct symfile *f, uint64_t large, struct symindex **ret);
void symindex_free(struct symindex *x);
/* The raw name of the function that covers an address, NUL-terminated. 0, SYMFILE_NONE,
 * SYMFILE_MALFORMED, SYMFILE_TOO_LARGE, -errno. */
int symindex_lookup(struct symindex *x, uint64_t address, char ret_name[static SYMFILE_NAME]);
/* Where the last symbol ends that ends at or before an address; 0: none does, or no lookup came
 * before. */
uint64_t symindex_floor(struct symindex *x, uint64_t address);
/* Bytes of memory held. */
size_t symindex_bytes(const struct symindex *x);

#endif
