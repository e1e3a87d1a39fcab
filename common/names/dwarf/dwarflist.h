/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of ranges in .debug_ranges (DWARF 4, section 2.17.3) or .debug_rnglists (DWARF 5, 2.17.3
 * and 7.28) of a unit whose list libdw cannot read. Pure; 64-bit addresses, 32-bit offsets.
 */
#ifndef PROFPIPE_DWARFLIST_H
#define PROFPIPE_DWARFLIST_H

#include <stdbool.h>
#include "common/base/span.h"

struct dwarflist {
	struct span left;      /* of the section, borrowed */
	struct span addresses; /* the unit's part of .debug_addr, borrowed */
	uint64_t base;	       /* what offsets count from: of the unit, until the list says else */
	unsigned version;      /* of the unit */
};

/* Where the list with this number begins in a .debug_rnglists that has one table, at its start.
 * False: there is none. */
bool dwarflist_find(struct span section, uint64_t number, uint64_t *ret_offset);
/* The next range. It may be empty, or end before it begins. False: that was the last one, or what
 * follows is not readable. */
bool dwarflist_next(struct dwarflist *l, uint64_t *ret_low, uint64_t *ret_high);

#endif
