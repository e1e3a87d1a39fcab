/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name and source position of a DWARF entry (DIE) of a function or an inlined call. Nothing
 * here follows a reference into another file.
 */
#ifndef COMMON_NAMES_DWARF_DWARFNAMES_H
#define COMMON_NAMES_DWARF_DWARFNAMES_H

#include <elfutils/libdw.h>
#include "common/names/names.h"

/* The language of a unit, DW_LANG_*; 0: unknown. */
uint64_t dwarfnames_language(Dwarf_Die *cudie);
/* The number in an attribute. integrate: also looks at the entry that this one is an instance of.
 * False: none. */
bool dwarfnames_number(Dwarf_Die *die, unsigned attribute, bool integrate, uint64_t *ret);
/* Sets the names of a call, kept in n; empty if it has none. */
void dwarfnames_call(struct names *n, struct names_call *c, Dwarf_Die *die);
/* Sets the line of its declaration, if c->source is the file of the declaration. file: the file of
 * the declaration; empty if unknown. */
void dwarfnames_start(struct names_call *c, Dwarf_Die *die, const char *file);

#endif
