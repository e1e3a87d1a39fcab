/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of code, each with the unit or function that it belongs to. They are added, sorted once,
 * and then looked up.
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

/* Sorted by low; reach[i] is the highest end of the first i + 1. */
struct dwarfranges {
	struct dwarfrange *data;
	uint64_t *reach;
	size_t len, cap, max; /* max 0: DWARFRANGES_MAX */
};

/* 0, SYMFILE_TOO_LARGE, -ENOMEM. */
int dwarfranges_push(struct dwarfranges *s, uint64_t low, uint64_t high, uint64_t what);
/* 0, -ENOMEM. */
int dwarfranges_sort(struct dwarfranges *s);
void dwarfranges_done(struct dwarfranges *s);
/* Finds the innermost range that contains address: the one that starts last. Further calls with the
 * same *cursor find the next ones outwards; it is SIZE_MAX at first. NULL: no more. */
const struct dwarfrange *dwarfranges_next(const struct dwarfranges *s, uint64_t address,
					  size_t *cursor);

#endif
