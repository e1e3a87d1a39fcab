/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name and source position of a DWARF entry (DIE) of a function or an inlined call. No function
 * here follows a reference into another file.
 */
#ifndef COMMON_NAMES_DWARF_DWARFNAMES_H
#define COMMON_NAMES_DWARF_DWARFNAMES_H

#include <elfutils/libdw.h>
#include "common/names/names.h"

/* Returns the language of a unit, DW_LANG_*; 0: unknown. */
uint64_t dwarfnames_language(Dwarf_Die *cudie);
/* Reads a number from an attribute. integrate: also looks at the entry that this one is an instance
 * of. Returns false if there is none. */
bool dwarfnames_number(Dwarf_Die *die, unsigned attribute, bool integrate, uint64_t *ret);
/* Sets the names of a call. They are stored in n; empty if the entry has none. */
void dwarfnames_call(struct names *n, struct names_call *c, Dwarf_Die *die);
/* Sets the line of the function's declaration, but only if c->source is the file of that
 * declaration. `file` is that file's path; empty if unknown. */
void dwarfnames_start(struct names_call *c, Dwarf_Die *die, const char *file);

#endif
