/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/definitions/table.h"

#include <errno.h>
#include <sys/random.h>
#include "bpf/mix.h"
#include "common/base/bytes/numbers.h"

static uint64_t seed(void)
{
	static uint64_t value;

	/* If getrandom fails, a variable's address is the seed. The table stays correct, but
	 * collisions are easier to provoke. */
	if (!value && getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t)sizeof(value))
		value = (uintptr_t)&value;
	value |= 1;
	return value;
}

/* A multiplier for numbers_fold that depends on the seed. */
static uint64_t multiplier(uint64_t from)
{
	return (seed() ^ from) | 1;
}

uint64_t table_hash64(const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t h = seed() ^ n;

	while (n) {
		const size_t part = n < 8 ? n : 8;
		uint64_t word = 0;

		memcpy(&word, p, part);
		h = numbers_fold(h ^ word ^ MIX_GOLDEN, multiplier(MIX_FOLD));
		p += part;
		n -= part;
	}
	return numbers_fold(h ^ 0xa0761d6478bd642fu, multiplier(0xe7037ed1a0b428dbu));
}

uint32_t table_hash(const void *data, size_t n)
{
	const uint64_t h = table_hash64(data, n);

	return (uint32_t)(h ^ h >> 32);
}

/* --- by content --- */

static uint32_t part_next(const struct table_index *ix, uint32_t hash, size_t *cursor)
{
	if (!ix->cap)
		return TABLE_NONE;
	const size_t mask = ix->cap - 1;
	size_t i = *cursor == SIZE_MAX ? hash & mask : (*cursor + 1) & mask;

	for (; ix->slots[i]; i = (i + 1) & mask)
		if (ix->hashes[i] == hash) {
			*cursor = i;
			return ix->slots[i] - 1;
		}
	*cursor = i;
	return TABLE_NONE;
}

/* A cursor of at least `cap` belongs to the late part. */
uint32_t table_index_next(const struct table_index *ix, uint32_t hash, size_t *cursor)
{
	size_t late = SIZE_MAX;

	if (*cursor == SIZE_MAX || *cursor < ix->cap) {
		const uint32_t i = part_next(ix, hash, cursor);

		if (i != TABLE_NONE || !ix->late)
			return i;
	} else if (ix->late) {
		late = *cursor - ix->cap;
	}
	if (!ix->late)
		return TABLE_NONE;
	const uint32_t i = part_next(ix->late, hash, &late);

	*cursor = ix->cap + late;
	return i;
}

static void index_put(struct table_index *ix, uint32_t hash, uint32_t slot)
{
	const size_t mask = ix->cap - 1;
	size_t i = hash & mask;

	while (ix->slots[i])
		i = (i + 1) & mask;
	ix->slots[i] = slot;
	ix->hashes[i] = hash;
	ix->len++;
}

static void part_done(struct table_index *ix, struct pool *p)
{
	free(ix->slots);
	free(ix->hashes);
	p->used -= ix->cap * 2 * sizeof(uint32_t);
}

static int index_grow(struct table_index *ix, struct pool *p)
{
	struct table_index bigger = { .cap = ix->cap ? ix->cap * 2 : 64 };
	const size_t bytes = bigger.cap * 2 * sizeof(uint32_t);

	if (bytes > pool_room(p))
		return -ENOBUFS;
	bigger.slots = calloc(bigger.cap, sizeof(uint32_t));
	bigger.hashes = calloc(bigger.cap, sizeof(uint32_t));
	if (!bigger.slots || !bigger.hashes) {
		free(bigger.slots);
		free(bigger.hashes);
		return -ENOBUFS;
	}
	for (size_t i = 0; i < ix->cap; i++)
		if (ix->slots[i])
			index_put(&bigger, ix->hashes[i], ix->slots[i]);
	bigger.late = ix->late;
	part_done(ix, p);
	p->used += bytes;
	*ix = bigger;
	return 0;
}

static bool is_full(size_t len, size_t cap)
{
	return len >= cap / 4 * 3;
}

int table_index_add(struct table_index *ix, struct pool *p, uint32_t hash, uint32_t number)
{
	struct table_index *to = ix;

	if (number == TABLE_NONE || pool_is_closed(p))
		return -ENOBUFS;
	/* Growing the index now would use up the reserve, which other arrays need. */
	if (is_full(ix->len, ix->cap) && !ix->late &&
	    pool_is_tight(p, 4 * ix->cap * sizeof(uint32_t))) {
		ix->late = pool_room(p) > sizeof(*ix) ? calloc(1, sizeof(*ix)) : NULL;
		if (!ix->late)
			return -ENOBUFS;
		p->used += sizeof(*ix);
	}
	if (ix->late && is_full(ix->len, ix->cap))
		to = ix->late;
	int r = is_full(to->len, to->cap) ? index_grow(to, p) : 0;

	if (!r)
		index_put(to, hash, number + 1);
	return r;
}

void table_index_done(struct table_index *ix, struct pool *p)
{
	part_done(ix, p);
	if (ix->late) {
		part_done(ix->late, p);
		p->used -= sizeof(*ix);
		free(ix->late);
	}
	*ix = (struct table_index){ 0 };
}

/* --- by id --- */

#define IDMAP_SLOT (sizeof(uint64_t) + sizeof(uint32_t))

static size_t home(const struct table_ids *m, uint64_t id)
{
	return (size_t)numbers_spread(id, seed()) & (m->cap - 1);
}

/* Returns the slot of the id, or the free slot where it belongs. */
static size_t slot_of(const struct table_ids *m, uint64_t id)
{
	size_t i = home(m, id);

	while (m->keys[i] && m->keys[i] != id)
		i = (i + 1) & (m->cap - 1);
	return i;
}

/* Returns the part that contains the id; NULL: none. */
static struct table_ids *part_with(const struct table_ids *m, uint64_t id)
{
	for (; m && id; m = m->late)
		if (m->cap && m->keys[slot_of(m, id)])
			return (struct table_ids *)m;
	return NULL;
}

uint32_t table_ids_get(const struct table_ids *m, uint64_t id)
{
	const struct table_ids *part = part_with(m, id);

	return part ? part->values[slot_of(part, id)] : TABLE_NONE;
}

static void ids_put(struct table_ids *m, uint64_t id, uint32_t value)
{
	size_t i = home(m, id);

	while (m->keys[i])
		i = (i + 1) & (m->cap - 1);
	m->keys[i] = id;
	m->values[i] = value;
	m->len++;
}

static void map_part_done(struct table_ids *m, struct pool *p)
{
	free(m->keys);
	free(m->values);
	p->used -= m->cap * IDMAP_SLOT;
}

static int ids_grow(struct table_ids *m, struct pool *p)
{
	struct table_ids bigger = { .cap = m->cap ? m->cap * 2 : 64 };

	if (bigger.cap * IDMAP_SLOT > pool_room(p))
		return -ENOBUFS;
	bigger.keys = calloc(bigger.cap, sizeof(*bigger.keys));
	bigger.values = calloc(bigger.cap, sizeof(*bigger.values));
	if (!bigger.keys || !bigger.values) {
		free(bigger.keys);
		free(bigger.values);
		return -ENOBUFS;
	}
	for (size_t i = 0; i < m->cap; i++)
		if (m->keys[i])
			ids_put(&bigger, m->keys[i], m->values[i]);
	bigger.late = m->late;
	map_part_done(m, p);
	p->used += bigger.cap * IDMAP_SLOT;
	*m = bigger;
	return 0;
}

int table_ids_add(struct table_ids *m, struct pool *p, uint64_t id, uint32_t value)
{
	struct table_ids *to = m;

	if (!id)
		return -EINVAL;
	if (pool_is_closed(p))
		return -ENOBUFS;
	if (is_full(m->len, m->cap) && !m->late && pool_is_tight(p, 2 * m->cap * IDMAP_SLOT)) {
		m->late = pool_room(p) > sizeof(*m) ? calloc(1, sizeof(*m)) : NULL;
		if (!m->late)
			return -ENOBUFS;
		p->used += sizeof(*m);
	}
	if (m->late && is_full(m->len, m->cap))
		to = m->late;
	int r = is_full(to->len, to->cap) ? ids_grow(to, p) : 0;

	if (!r)
		ids_put(to, id, value);
	return r;
}

int table_ids_set(struct table_ids *m, struct pool *p, uint64_t id, uint32_t value)
{
	struct table_ids *part = part_with(m, id);

	if (!part)
		return table_ids_add(m, p, id, value);
	part->values[slot_of(part, id)] = value;
	return 0;
}

/* Moves later entries of the run into the hole, if their own slot allows it. */
void table_ids_remove(struct table_ids *from, uint64_t id)
{
	struct table_ids *m = part_with(from, id);

	if (!m)
		return;
	const size_t mask = m->cap - 1;
	size_t hole = home(m, id);

	while (m->keys[hole] != id)
		hole = (hole + 1) & mask;
	for (size_t i = (hole + 1) & mask; m->keys[i]; i = (i + 1) & mask)
		if (((i - home(m, m->keys[i])) & mask) >= ((i - hole) & mask)) {
			m->keys[hole] = m->keys[i];
			m->values[hole] = m->values[i];
			hole = i;
		}
	m->keys[hole] = 0;
	m->len--;
}

void table_ids_done(struct table_ids *m, struct pool *p)
{
	map_part_done(m, p);
	if (m->late) {
		map_part_done(m->late, p);
		p->used -= sizeof(*m);
		free(m->late);
	}
	*m = (struct table_ids){ 0 };
}

/* --- strings --- */

int table_strings_intern(struct table_strings *s, struct pool *p, struct str value, uint32_t *ret)
{
	const uint32_t hash = table_hash(value.data, value.len);
	size_t cursor = SIZE_MAX;
	uint32_t i;

	for (i = table_index_next(&s->index, hash, &cursor); i != TABLE_NONE;
	     i = table_index_next(&s->index, hash, &cursor))
		if (str_eq(table_strings_get(s, i), value)) {
			*ret = i;
			return 0;
		}
	if (s->text_len + value.len > UINT32_MAX || pool_is_closed(p))
		return -ENOBUFS;
	/* Allocate one more byte, so that even the empty string has an address. */
	void *text = pool_grow(p, s->text, &s->text_cap, s->text_len + value.len + 1, 1);

	if (!text)
		return -ENOBUFS;
	s->text = text;
	void *entries = pool_grow(p, s->entries, &s->cap, s->len + 1, sizeof(*s->entries));

	if (!entries)
		return -ENOBUFS;
	s->entries = entries;
	int r = table_index_add(&s->index, p, hash, (uint32_t)s->len);

	if (r)
		return r;
	if (value.len)
		memcpy(s->text + s->text_len, value.data, value.len);
	s->entries[s->len] = (struct table_strings_entry){ .at = (uint32_t)s->text_len,
							   .len = value.len };
	s->text_len += value.len;
	*ret = (uint32_t)s->len++;
	return 0;
}

void table_strings_done(struct table_strings *s, struct pool *p)
{
	pool_free(p, s->text, &s->text_cap, 1);
	pool_free(p, s->entries, &s->cap, sizeof(*s->entries));
	table_index_done(&s->index, p);
	*s = (struct table_strings){ 0 };
}
