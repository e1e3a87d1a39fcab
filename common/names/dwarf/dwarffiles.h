/* SPDX-License-Identifier: Apache-2.0 */
/* The source files of a unit of DWARF, by the numbers that its entries use. */
#ifndef COMMON_NAMES_DWARF_DWARFFILES_H
#define COMMON_NAMES_DWARF_DWARFFILES_H

#include "common/names/dwarf/dwarflines.h"
#include "common/names/dwarf/dwarfsplit.h"
#include "common/names/names.h"

#define DWARFFILES_PATH (2 * NAMES_TEXT)

struct dwarffiles {
	struct dwarflines_sections sections; /* of an image, borrowed */
	struct dwarflines table;	     /* not indexed, so it owns nothing */
	Dwarf_Die *cudie;		     /* borrowed; NULL: the unit has no table */
};

/* Reads the header of a unit's table. m and cudie are borrowed as long as *ret is used. */
void dwarffiles_open(const struct dwarfimage *m, Dwarf_Die *cudie, struct dwarffiles *ret);
/* Like dwarffiles_open, for a split unit that may have a table of its own. cudie is its unit in the
 * program, which names the folder. */
void dwarffiles_open_split(struct dwarfsplit *s, Dwarf_Die *cudie, struct dwarffiles *ret);
/* Writes the path of a file, NUL-terminated. A relative path starts at the unit's folder. The path
 * is empty if the file is unknown. */
void dwarffiles_path(const struct dwarffiles *f, uint64_t number,
		     char into[static DWARFFILES_PATH]);
/* Writes the path of the file in which an entry is declared, or an empty one. alt is the other
 * image that may contain the entry. split holds the files of all entries of a split unit; NULL:
 * each entry uses the files of its own unit. */
void dwarffiles_declaration(Dwarf_Die *die, const struct dwarfimage *image,
			    const struct dwarfimage *alt, const struct dwarffiles *split,
			    char into[static DWARFFILES_PATH]);

#endif
