/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of a process: a sorted array without overlaps. A new mapping takes the
 * place of what it covers; what is left of a mapping on either side stays.
 *
 * New mappings are noted first and put in place together, since a process can have a hundred
 * thousand of them. An array is shared by reference count and copied before it is changed.
 */
#ifndef PROFPIPE_MAPS_H
#define PROFPIPE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backing;

struct map {
	uint64_t start, end;	 /* user addresses */
	uint64_t offset;	 /* of start, in the file */
	struct backing *backing; /* counted; NULL: code in no file */
};

struct maps {
	uint32_t refs;
	uint32_t len, cap; /* sorted part */
	struct map *at;
	uint32_t noted_len, noted_cap;
	struct map *noted; /* in the order they came */
};

/* NULL: no memory. */
struct maps *maps_new(void);
struct maps *maps_get(struct maps *m);
/* Takes NULL. Drops the backings with the last reference. */
void maps_put(struct maps *m);
/* Notes a mapping; takes the reference to its backing, in any case. *m is replaced by a copy of its
 * own when it is shared. 0, -EINVAL (empty), -ENOMEM. */
int maps_add(struct maps **m, const struct map *add);
/* Puts what is noted in place. Mappings above max are dropped from the end, and counted in
 * *dropped. 0, -ENOMEM (what was noted stays so). */
int maps_settle(struct maps *m, uint32_t max, uint64_t *dropped);
/* The index of the first mapping that ends above addr, of those in place, or m->len. */
uint32_t maps_from(const struct maps *m, uint64_t addr);
/* The mapping that covers addr, of those in place; NULL: none. */
const struct map *maps_find(const struct maps *m, uint64_t addr);
/* Code in no file is known there already: [start, end) within one mapping, and nothing is noted. */
bool maps_has_anonymous(const struct maps *m, uint64_t start, uint64_t end);

#endif
