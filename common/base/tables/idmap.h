/* SPDX-License-Identifier: Apache-2.0 */
/* A map from a peer's ids to our own small numbers, with a ceiling. Open addressing; 12 bytes per
 * slot, at most 3/4 of them used. */
#ifndef COMMON_BASE_TABLES_IDMAP_H
#define COMMON_BASE_TABLES_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap {
	uint64_t *keys; /* 0: an empty slot */
	uint32_t *values;
	size_t len, cap; /* cap: a power of two, or 0 */
	size_t max;
	uint64_t seed; /* so that a peer cannot choose ids that collide */
};

#define IDMAP_NONE UINT32_MAX

/* max: the maximum number of entries. -errno of getrandom. */
int idmap_init(struct idmap *m, size_t max);
void idmap_done(struct idmap *m);
void idmap_clear(struct idmap *m);
/* IDMAP_NONE for an unknown key. */
uint32_t idmap_get(const struct idmap *m, uint64_t key);
/* Fetches the key's place into the cpu's cache, for idmap_get soon after. */
void idmap_expect(const struct idmap *m, uint64_t key);
/* Adds or replaces an entry. Returns 0, -EINVAL for key 0, -ENOBUFS at the ceiling, or -ENOMEM. */
int idmap_put(struct idmap *m, uint64_t key, uint32_t value);
/* Memory of the table. */
static inline size_t idmap_bytes(const struct idmap *m)
{
	return m->cap * (sizeof(*m->keys) + sizeof(*m->values));
}
void idmap_remove(struct idmap *m, uint64_t key);

#endif
