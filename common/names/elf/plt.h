/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of a procedure linkage table's slots, which no symbol names: a slot jumps to where a word
 * of the GOT says, and a relocation of that word names the function. x86-64, files with section
 * headers.
 *
 * Sources: the x86-64 psABI, "Procedure Linkage Table" and "Relocation Types"; what binutils, lld
 * and mold write.
 */
#ifndef PROFPIPE_PLT_H
#define PROFPIPE_PLT_H

#include "common/names/elf/symfile.h"
#include "common/names/elf/symindex.h"

/* The raw name of the function that the slot at an address leads to. symbols: of f. 0,
 * SYMFILE_NONE, SYMFILE_MALFORMED, -errno. */
int plt_lookup(const struct symfile *f, struct symindex *symbols, uint64_t address,
	       char ret_name[static SYMFILE_NAME]);

#endif
