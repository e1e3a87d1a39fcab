/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of address ranges in .debug_ranges (DWARF 4, section 2.17.3) or .debug_rnglists (DWARF 5,
 * 2.17.3 and 7.28), for units whose list libdw cannot read. Pure; 64-bit addresses, 32-bit offsets.
 */
#ifndef COMMON_NAMES_DWARF_DWARFLIST_H
#define COMMON_NAMES_DWARF_DWARFLIST_H

#include <stdbool.h>
#include "common/base/bytes/span.h"

struct dwarflist {
	struct span left;      /* the unread rest of the section, borrowed */
	struct span addresses; /* the unit's part of .debug_addr, borrowed */
	uint64_t base;	       /* offsets are added to this: the unit's base, until the list sets
			        * another one */
	unsigned version;      /* of the unit */
};

/* Finds the offset of a list by its number. The .debug_rnglists must consist of one table. Returns
 * false if there is none. */
bool dwarflist_find(struct span section, uint64_t number, uint64_t *ret_offset);
/* Gives the next range. It may be empty, or end before it begins. Returns false if the list ended
 * or is damaged. */
bool dwarflist_next(struct dwarflist *l, uint64_t *ret_low, uint64_t *ret_high);

#endif
