/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of code, and what each belongs to: gathered, sorted once, then looked up in.
 */
#ifndef PROFPIPE_DWARFRANGES_H
#define PROFPIPE_DWARFRANGES_H

#include <stddef.h>
#include <stdint.h>

#define RANGES_MAX (4u << 20)

struct range {
	uint64_t low, high;
	uint64_t what; /* unit: its index; function: the offset of its entry */
};

/* Sorted by low; reach[i] is the highest end among the first i + 1. */
struct ranges {
	struct range *data;
	uint64_t *reach;
	size_t len, cap, max; /* max: 0: RANGES_MAX */
};

/* 0, SYMFILE_TOO_LARGE, -ENOMEM. */
int ranges_push(struct ranges *s, uint64_t low, uint64_t high, uint64_t what);
/* 0, -ENOMEM. */
int ranges_sort(struct ranges *s);
void ranges_done(struct ranges *s);
/* The range over address that starts last; *cursor is where to go on for the next one outwards,
 * SIZE_MAX at first. */
const struct range *ranges_next(const struct ranges *s, uint64_t address, size_t *cursor);

#endif
