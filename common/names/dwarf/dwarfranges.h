/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of code, each with the unit or function that it belongs to. The caller adds all of them,
 * sorts them once, and then looks addresses up.
 */
#ifndef COMMON_NAMES_DWARF_DWARFRANGES_H
#define COMMON_NAMES_DWARF_DWARFRANGES_H

#include <stddef.h>
#include <stdint.h>

#define DWARFRANGES_MAX (4u << 20)

struct dwarfrange {
	uint64_t low, high;
	uint64_t what; /* a unit's index, or the offset of a function's entry */
};

/* Ranges sorted by low; reach[i] is the highest end among the first i + 1. */
struct dwarfranges {
	struct dwarfrange *data;
	uint64_t *reach;
	size_t len, cap, max; /* max 0: DWARFRANGES_MAX */
};

/* Adds a range. Returns 0, SYMFILE_TOO_LARGE or -ENOMEM. */
int dwarfranges_push(struct dwarfranges *s, uint64_t low, uint64_t high, uint64_t what);
/* Sorts the ranges. Call it after the last dwarfranges_push. Returns 0 or -ENOMEM. */
int dwarfranges_sort(struct dwarfranges *s);
void dwarfranges_done(struct dwarfranges *s);
/* Finds the innermost range that contains address: the one that starts last. *cursor is SIZE_MAX
 * before the first call. Further calls with the same *cursor find the next ones outwards. Returns
 * NULL if there are no more. */
const struct dwarfrange *dwarfranges_next(const struct dwarfranges *s, uint64_t address,
					  size_t *cursor);

#endif
