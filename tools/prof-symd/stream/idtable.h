/* SPDX-License-Identifier: Apache-2.0 */
/* A table of equal-sized elements by the ids of a stream, limited in number. Slots of removed
 * elements are reused. */
#ifndef PROF_SYMD_STREAM_IDTABLE_H
#define PROF_SYMD_STREAM_IDTABLE_H

#include <stddef.h>
#include <stdint.h>
#include "common/base/tables/idmap.h"

struct idtable {
	struct idmap ids;
	void *data;
	size_t size; /* size of an element in bytes */
	uint32_t len, cap;
	uint32_t *free_slots;
	uint32_t free_count, free_cap;
};

/* size: of one element, in bytes; max: limit of elements. Returns 0 or errors of idmap_init. */
int idtable_init(struct idtable *t, size_t size, size_t max);
/* Forgets all elements, and frees their memory. */
void idtable_clear(struct idtable *t);
/* Returns the element in a slot below len; the element may have been removed. */
void *idtable_at(const struct idtable *t, uint32_t slot);
/* Returns the element with an id, or NULL. */
void *idtable_get(const struct idtable *t, uint64_t id);
/* Fetches the elements with these ids into the cpu's cache side by side, for idtable_get soon
 * after. */
void idtable_expect(const struct idtable *t, const uint64_t *ids, uint32_t n);
/* Adds a zeroed element. Invalidates pointers into the table. 0, -EEXIST, -EINVAL for id 0,
 * -ENOBUFS, -ENOMEM. */
int idtable_add(struct idtable *t, uint64_t id, uint32_t *ret_slot);
void idtable_remove(struct idtable *t, uint64_t id);

/* Return the bytes of memory held, and the bytes it would hold with one more element. */
size_t idtable_bytes(const struct idtable *t);
size_t idtable_bytes_then(const struct idtable *t);

#endif
