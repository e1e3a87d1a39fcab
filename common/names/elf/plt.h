/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the slots of a procedure linkage table (PLT). No symbol names a slot. But a slot jumps
 * through a word of the GOT, and the relocation of that word names the function. Limited to x86-64,
 * and to files with section headers.
 *
 * Sources: the x86-64 psABI, "Procedure Linkage Table" and "Relocation Types"; output of binutils,
 * lld and mold.
 */
#ifndef COMMON_NAMES_ELF_PLT_H
#define COMMON_NAMES_ELF_PLT_H

#include "common/names/elf/symfile.h"
#include "common/names/elf/symindex.h"

/* Finds the raw name of the function that the slot at an address leads to. `symbols` are those of
 * f. Returns 0, SYMFILE_NONE, SYMFILE_MALFORMED or -errno. */
int plt_lookup(const struct symfile *f, struct symindex *symbols, uint64_t address,
	       char ret_name[static SYMFILE_NAME]);

#endif
