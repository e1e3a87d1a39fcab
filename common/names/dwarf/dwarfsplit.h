/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split DWARF: the part of a unit that compilers put into a .dwo file (-gsplit-dwarf), or packers
 * into a package (.dwp). libdw would open that file by a path in the program. Instead it gets an
 * image (dwarfimage.h) of the unit's sections in the .dwo file, and of its addresses and ranges in
 * the program. The image names no other file.
 *
 * Sources: DWARF 5, 7.3; GNU's DebugFission.
 */
#ifndef COMMON_NAMES_DWARF_DWARFSPLIT_H
#define COMMON_NAMES_DWARF_DWARFSPLIT_H

#include "common/names/dwarf/dwarfimage.h"
#include "common/names/dwarf/dwarflist.h"

/* The unit's entry in the program, called the skeleton. */
struct dwarfsplit_unit {
	uint64_t id, addr_base, ranges_base;
	uint64_t low; /* base address of its ranges */
};

struct dwarfsplit {
	struct symfile *file; /* owned; NULL: the unit is in the package */
	struct dwarfsplit_unit skeleton;
	struct dwarfimage image;
	Dwarf_Die cudie;
};

/* The ranges of an entry. */
struct dwarfsplit_ranges {
	uint64_t low, high; /* low < high: this is the only range, and there is no list */
	struct dwarflist list;
};

/* Reads a unit's skeleton. Returns false if the unit is not split. */
bool dwarfsplit_skeleton(Dwarf_Die *cudie, struct dwarfsplit_unit *ret);
/* Writes the path where the compiler put the .dwo file. Returns false if it is unknown. */
bool dwarfsplit_path(Dwarf_Die *cudie, char *into, size_t cap);
/* Opens s, whose skeleton is set. The DWARF comes from s->file, or from the package if that is
 * NULL. Returns 0; SYMFILE_NONE: the file has no unit with this id; errors of dwarfimage_open. Call
 * dwarfsplit_close also after an error. */
int dwarfsplit_open(const struct symfile *program, const struct symfile *package, uint64_t max,
		    struct dwarfsplit *s);
/* Frees the image, and keeps the file. */
void dwarfsplit_close(struct dwarfsplit *s);

/* Begins to read the ranges of an entry. libdw cannot read them here: their base address is in the
 * program. */
void dwarfsplit_ranges(const struct dwarfsplit *s, Dwarf_Die *die, struct dwarfsplit_ranges *ret);
/* Gives the next range. Returns false if there are no more. */
bool dwarfsplit_next(struct dwarfsplit_ranges *r, uint64_t *ret_low, uint64_t *ret_high);

#endif
