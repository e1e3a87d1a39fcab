/* SPDX-License-Identifier: Apache-2.0 */
/* The source files of a unit of DWARF, by the numbers that its entries have. */
#ifndef COMMON_NAMES_DWARF_DWARFFILES_H
#define COMMON_NAMES_DWARF_DWARFFILES_H

#include "common/names/dwarf/dwarflines.h"
#include "common/names/dwarf/dwarfsplit.h"
#include "common/names/names.h"

#define DWARFFILES_PATH (2 * NAMES_TEXT)

struct dwarffiles {
	struct dwarflines_sections sections; /* of an image, borrowed */
	struct dwarflines table;	     /* without marks, so it owns nothing */
	Dwarf_Die *cudie;		     /* borrowed; NULL: the unit has no table */
};

/* Reads the header of a unit's table. m and cudie are borrowed as long as *ret is used. */
void dwarffiles_open(const struct dwarfimage *m, Dwarf_Die *cudie, struct dwarffiles *ret);
/* The same for a split unit, if it has a table of its own. cudie: its unit in the program, which
 * names the folder. */
void dwarffiles_open_split(struct dwarfsplit *s, Dwarf_Die *cudie, struct dwarffiles *ret);
/* Writes the path of a file; if relative, it starts at the unit's folder. Empty if unknown. */
void dwarffiles_path(const struct dwarffiles *f, uint64_t number,
		     char into[static DWARFFILES_PATH]);
/* The file in which an entry is declared, or empty. alt: the other image in which the entry may be.
 * split: the files of all entries of a split unit; NULL: each entry has those of its own unit. */
void dwarffiles_declaration(Dwarf_Die *die, const struct dwarfimage *image,
			    const struct dwarfimage *alt, const struct dwarffiles *split,
			    char into[static DWARFFILES_PATH]);

#endif
