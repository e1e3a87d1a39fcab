/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the slots of a procedure linkage table (PLT). No symbol names a slot. But a slot jumps
 * through a word of the GOT, and the relocation of that word names the function. x86-64, files with
 * section headers.
 *
 * Sources: the x86-64 psABI, "Procedure Linkage Table" and "Relocation Types"; what binutils, lld
 * and mold write.
 */
#ifndef COMMON_NAMES_ELF_PLT_H
#define COMMON_NAMES_ELF_PLT_H

#include "common/names/elf/symfile.h"
#include "common/names/elf/symindex.h"

/* Finds the raw name of the function to which the slot at an address leads. symbols: of f. 0,
 * SYMFILE_NONE, SYMFILE_MALFORMED, -errno. */
int plt_lookup(const struct symfile *f, struct symindex *symbols, uint64_t address,
	       char ret_name[static SYMFILE_NAME]);

#endif
