/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the entry of a function or of an inlined call is called, and where it is written. Nothing
 * here follows a unit's entry into another file.
 */
#ifndef PROFPIPE_DWARFNAMES_H
#define PROFPIPE_DWARFNAMES_H

#include <elfutils/libdw.h>
#include "common/names/names.h"

/* The language of a unit, DW_LANG_*; 0 where it does not say. */
uint64_t dwarfnames_language(Dwarf_Die *cudie);
/* The number in an attribute, integrate: also in what the entry is an instance of. False: it has
 * none. */
bool dwarfnames_number(Dwarf_Die *die, unsigned attribute, bool integrate, uint64_t *ret);
/* Sets the names of a call, kept in n; empty, where it has none. */
void dwarfnames_call(struct names *n, struct call *c, Dwarf_Die *die);
/* Sets its file. A path as compilers leave it: relative ones are taken from the unit's directory.
 */
void dwarfnames_source(struct names *n, struct call *c, const char *path, Dwarf_Die *cudie);
/* Sets the line of its declaration, when that is in the file that c->source says. file: where it is
 * declared; may be NULL. */
void dwarfnames_start(struct call *c, Dwarf_Die *die, const char *file);

#endif
