/* SPDX-License-Identifier: Apache-2.0 */
/* Things of one kind and size by the ids that a stream gives them, up to a ceiling; the places of
 * removed ones are used again. */
#ifndef PROFPIPE_IDTABLE_H
#define PROFPIPE_IDTABLE_H

#include <stddef.h>
#include <stdint.h>
#include "common/base/idmap.h"

struct idtable {
	struct idmap ids;
	void *data;
	size_t size; /* of one */
	uint32_t len, cap;
	uint32_t *free_slots;
	uint32_t free_count, free_cap;
};

/* size: of one thing, in bytes; max: how many. 0 or errors of idmap_init. */
int idtable_init(struct idtable *t, size_t size, size_t max);
/* Forgets all, and frees what they took. */
void idtable_clear(struct idtable *t);
/* The thing in a slot below len, which may be a removed one's. */
void *idtable_at(const struct idtable *t, uint32_t slot);
/* The thing of an id, or NULL. */
void *idtable_get(const struct idtable *t, uint64_t id);
/* A zeroed place for id. 0, -EEXIST, -EINVAL for id 0, -ENOBUFS, -ENOMEM. Pointers into the table
 * are void afterwards. */
int idtable_add(struct idtable *t, uint64_t id, uint32_t *ret_slot);
void idtable_remove(struct idtable *t, uint64_t id);

/* Memory that it takes, and would with one more in it. */
size_t idtable_bytes(const struct idtable *t);
size_t idtable_bytes_then(const struct idtable *t);

#endif
