/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/idtable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int idtable_init(struct idtable *t, size_t size, size_t max)
{
	*t = (struct idtable){ .size = size };
	return idmap_init(&t->ids, max);
}

void idtable_clear(struct idtable *t)
{
	idmap_clear(&t->ids);
	free(t->data);
	free(t->free_slots);
	t->data = NULL;
	t->free_slots = NULL;
	t->len = t->cap = t->free_count = t->free_cap = 0;
}

void *idtable_at(const struct idtable *t, uint32_t slot)
{
	return (char *)t->data + slot * t->size;
}

void *idtable_get(const struct idtable *t, uint64_t id)
{
	uint32_t slot = idmap_get(&t->ids, id);

	return slot == IDMAP_NONE ? NULL : idtable_at(t, slot);
}

void idtable_expect(const struct idtable *t, const uint64_t *ids, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		idmap_expect(&t->ids, ids[i]);
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(idtable_get(t, ids[i]));
}

int idtable_add(struct idtable *t, uint64_t id, uint32_t *ret_slot)
{
	uint32_t slot;
	int r;

	if (idmap_get(&t->ids, id) != IDMAP_NONE)
		return -EEXIST;
	if (t->free_count > 0) {
		slot = t->free_slots[t->free_count - 1];
	} else {
		if (t->len == t->cap) {
			uint32_t cap = t->cap ? t->cap + t->cap / 2 : 16;
			void *data = reallocarray(t->data, cap, t->size);

			if (!data)
				return -ENOMEM;
			t->data = data;
			t->cap = cap;
		}
		slot = t->len;
	}
	r = idmap_put(&t->ids, id, slot);
	if (r)
		return r;
	if (t->free_count > 0)
		t->free_count--;
	else
		t->len++;
	memset(idtable_at(t, slot), 0, t->size);
	*ret_slot = slot;
	return 0;
}

void idtable_remove(struct idtable *t, uint64_t id)
{
	uint32_t slot = idmap_get(&t->ids, id);

	if (slot == IDMAP_NONE)
		return;
	if (t->free_count == t->free_cap) {
		uint32_t cap = t->free_cap ? t->free_cap * 2 : 16;
		uint32_t *slots = reallocarray(t->free_slots, cap, sizeof(*slots));

		if (slots) {
			t->free_slots = slots;
			t->free_cap = cap;
		}
	}
	idmap_remove(&t->ids, id);
	if (t->free_count < t->free_cap)
		t->free_slots[t->free_count++] = slot; /* otherwise this slot is not reused */
}

size_t idtable_bytes(const struct idtable *t)
{
	return t->cap * t->size + t->free_cap * sizeof(*t->free_slots) + idmap_bytes(&t->ids);
}

size_t idtable_bytes_then(const struct idtable *t)
{
	size_t bytes = idtable_bytes(t);

	if (t->free_count == 0 && t->len == t->cap)
		bytes += (t->cap ? t->cap / 2 : 16) * t->size;
	/* While a map grows, the old and the new one exist together. */
	if (t->ids.len + 1 > t->ids.cap / 4 * 3)
		bytes += 2 * idmap_bytes(&t->ids);
	return bytes;
}
