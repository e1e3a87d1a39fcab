/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a unit's DWARF that compilers put into a .dwo file (-gsplit-dwarf), or packers into a
 * .dwp. libdw would open the file by a path found in the program; here it gets an image (see
 * dwarfimage.h) of the unit's sections there, and of the addresses and ranges that the unit has in
 * the program. So no entry in it names another file. Sources: DWARF 5, 7.3; GNU's DebugFission.
 */
#ifndef PROFPIPE_DWARFSPLIT_H
#define PROFPIPE_DWARFSPLIT_H

#include "common/names/dwarf/dwarfimage.h"
#include "common/names/dwarf/dwarflist.h"

/* What a program says of such a unit. */
struct dwarfskeleton {
	uint64_t id, addr_base, ranges_base;
	uint64_t low; /* what its ranges count from */
};

struct dwarfsplit {
	struct symfile *file; /* owned; NULL: it is in the package */
	struct dwarfskeleton skeleton;
	struct dwarfimage image;
	Dwarf_Die cudie;
};

/* The ranges of an entry. */
struct dwarfsplit_ranges {
	uint64_t low, high; /* low < high: the only one */
	struct dwarflist list;
};

/* False: the entry is not that of such a unit. */
bool dwarfsplit_skeleton(Dwarf_Die *cudie, struct dwarfskeleton *ret);
/* Where its .dwo file was written. False: it does not say. */
bool dwarfsplit_path(Dwarf_Die *cudie, char *into, size_t cap);
/* Opens s, whose file and skeleton are set, or as a unit of a package. 0, SYMFILE_NONE: it has no
 * unit of that id; as dwarfimage_open. After an error dwarfsplit_close is wanted, too. */
int dwarfsplit_open(const struct symfile *program, const struct symfile *package, uint64_t max,
		    struct dwarfsplit *s);
/* Gives up the image; the file stays. */
void dwarfsplit_close(struct dwarfsplit *s);

/* libdw does not know what an entry's ranges count from, which stands in the program. */
void dwarfsplit_ranges(const struct dwarfsplit *s, Dwarf_Die *die, struct dwarfsplit_ranges *ret);
bool dwarfsplit_next(struct dwarfsplit_ranges *r, uint64_t *ret_low, uint64_t *ret_high);

#endif
