/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index of a file's symbols (symtable.h): finds the symbol of the function at an address. The
 * rules (System V gABI, chapter 4, "Symbol Table"):
 *
 *  - Only STT_FUNC, STT_GNU_IFUNC and STT_NOTYPE symbols of executable sections count, and only
 *    with a name. A symbol never reaches beyond its section.
 *  - A symbol with a size covers exactly that many bytes. If several cover an address, the one that
 *    starts last wins. If they start together, the first of these differences decides:
 *     - a function wins over an untyped symbol
 *     - a symbol that other files see (global or weak) wins over a local one
 *     - the smaller one wins
 *     - the one with fewer leading underscores wins (`malloc`, not `__libc_malloc`), then the
 *       shorter one; both as demangled
 *     - the first in byte order wins
 *  - A symbol without a size (hand-written assembly) covers the bytes up to the next symbol of any
 *    kind, or to the end of its section. If it starts inside a symbol with a size, it covers
 *    nothing. It never takes an address from a symbol with a size.
 *  - If there is a .symtab, only that is used. Otherwise .dynsym is used, together with the .symtab
 *    inside .gnu_debugdata (MiniDebugInfo).
 */
#ifndef COMMON_NAMES_ELF_SYMINDEX_H
#define COMMON_NAMES_ELF_SYMINDEX_H

#include "common/names/elf/symfile.h"

struct symindex;

#define SYMINDEX_LARGE 65536u

/* Prepares an index of f, which is borrowed until symindex_free. large: a .symtab with at least
 * this many entries is not kept in memory as a whole (SYMINDEX_LARGE, except in tests). The first
 * lookup reads the tables, so lookups report damaged ones. Returns 0 or -ENOMEM. */
int symindex_new(const struct symfile *f, uint64_t large, struct symindex **ret);
void symindex_free(struct symindex *x);
/* Finds the raw name of the function at an address, NUL-terminated. Returns 0, SYMFILE_NONE,
 * SYMFILE_MALFORMED, SYMFILE_TOO_LARGE or -errno. */
int symindex_lookup(struct symindex *x, uint64_t address, char ret_name[static SYMFILE_NAME]);
/* Returns the highest end of a symbol at or before an address. 0: none, or there was no lookup
 * yet. */
uint64_t symindex_floor(struct symindex *x, uint64_t address);
/* Bytes of memory held. */
size_t symindex_bytes(const struct symindex *x);

#endif
