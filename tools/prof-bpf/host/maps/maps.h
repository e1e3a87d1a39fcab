/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of a process: a sorted array without overlaps. A new mapping replaces
 * what it covers; the rest of an old mapping stays on either side.
 *
 * New mappings are first noted and then put in place together, since a process may have a hundred
 * thousand. Arrays are shared by reference count and copied before a change.
 */
#ifndef PROF_BPF_HOST_MAPS_MAPS_H
#define PROF_BPF_HOST_MAPS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct files_backing;
struct owner;
struct owners;

struct map {
	uint64_t start, end;	       /* user addresses */
	uint64_t offset;	       /* file offset of start */
	struct files_backing *backing; /* holds a reference; NULL: code that belongs to no file */
};

struct maps {
	uint32_t refs;
	uint32_t len, cap; /* of the sorted part */
	struct map *at;
	uint32_t noted_len, noted_cap;
	struct map *noted; /* in order of arrival */
	struct owners *owners;
	struct owner *owner; /* the owner charged for them; NULL: not charged yet */
	uint32_t charged;
};

/* Returns an empty array with one reference; NULL: no memory. */
struct maps *maps_new(void);
struct maps *maps_get(struct maps *m);
/* Accepts NULL. The last reference also drops the backings. */
void maps_put(struct maps *m);
/* Notes a mapping. Always takes over the reference to its backing. Replaces *m by a copy if it is
 * shared. Returns 0, -EINVAL (empty) or -ENOMEM. */
int maps_add(struct maps **m, const struct map *add);
/* Puts noted mappings in place. Drops mappings above max from the end, and counts them in *dropped.
 * Returns 0 or -ENOMEM (the noted mappings stay noted). */
int maps_settle(struct maps *m, uint32_t max, uint64_t *dropped);
/* Charges all current mappings to an owner. If processes share the array, its owner stays. */
void maps_charge(struct maps *m, struct owners *o, struct owner *w);
/* Returns the index of the first mapping in place that ends above addr, or m->len. */
uint32_t maps_from(const struct maps *m, uint64_t addr);
/* Returns the mapping in place that covers addr, or NULL. */
const struct map *maps_find(const struct maps *m, uint64_t addr);
/* Whether [start, end) is known to be code that belongs to no file: it lies within one mapping, and
 * nothing is noted. */
bool maps_has_anonymous(const struct maps *m, uint64_t start, uint64_t end);

#endif
