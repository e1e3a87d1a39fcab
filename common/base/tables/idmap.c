/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/tables/idmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "common/base/bytes/numbers.h"

static size_t slot_of(const struct idmap *m, uint64_t key)
{
	return (size_t)numbers_spread(key, m->seed) & (m->cap - 1);
}

int idmap_init(struct idmap *m, size_t max)
{
	*m = (struct idmap){ .max = max };
	return getrandom(&m->seed, sizeof(m->seed), 0) == (ssize_t)sizeof(m->seed) ? 0 : -EIO;
}

void idmap_done(struct idmap *m)
{
	free(m->keys);
	free(m->values);
	m->keys = NULL;
	m->values = NULL;
	m->len = m->cap = 0;
}

void idmap_clear(struct idmap *m)
{
	idmap_done(m);
}

uint32_t idmap_get(const struct idmap *m, uint64_t key)
{
	if (!m->cap || !key)
		return IDMAP_NONE;
	for (size_t i = slot_of(m, key);; i = (i + 1) & (m->cap - 1)) {
		if (m->keys[i] == key)
			return m->values[i];
		if (!m->keys[i])
			return IDMAP_NONE;
	}
}

void idmap_expect(const struct idmap *m, uint64_t key)
{
	if (!m->cap)
		return;
	const size_t i = slot_of(m, key);

	__builtin_prefetch(&m->keys[i]);
	__builtin_prefetch(&m->values[i]);
}

static int grow(struct idmap *m)
{
	struct idmap bigger = *m;

	bigger.cap = m->cap ? m->cap * 2 : 64;
	bigger.keys = calloc(bigger.cap, sizeof(*bigger.keys));
	bigger.values = calloc(bigger.cap, sizeof(*bigger.values));
	if (!bigger.keys || !bigger.values) {
		idmap_done(&bigger);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->cap; i++) {
		size_t at;

		if (!m->keys[i])
			continue;
		for (at = slot_of(&bigger, m->keys[i]); bigger.keys[at];
		     at = (at + 1) & (bigger.cap - 1))
			;
		bigger.keys[at] = m->keys[i];
		bigger.values[at] = m->values[i];
	}
	free(m->keys);
	free(m->values);
	*m = bigger;
	return 0;
}

int idmap_put(struct idmap *m, uint64_t key, uint32_t value)
{
	if (!key)
		return -EINVAL;
	if (m->cap == 0 || m->len + 1 > m->cap / 4 * 3) {
		int r = m->len >= m->max ? 0 : grow(m);

		if (r)
			return r;
	}
	for (size_t i = slot_of(m, key);; i = (i + 1) & (m->cap - 1)) {
		if (m->keys[i] == key) {
			m->values[i] = value;
			return 0;
		}
		if (!m->keys[i]) {
			if (m->len >= m->max)
				return -ENOBUFS;
			m->keys[i] = key;
			m->values[i] = value;
			m->len++;
			return 0;
		}
	}
}

/* Moves later entries of the run into the gap, as far as their own slots allow it. */
void idmap_remove(struct idmap *m, uint64_t key)
{
	size_t hole, i;

	if (idmap_get(m, key) == IDMAP_NONE)
		return;
	for (hole = slot_of(m, key); m->keys[hole] != key; hole = (hole + 1) & (m->cap - 1))
		;
	for (i = (hole + 1) & (m->cap - 1); m->keys[i]; i = (i + 1) & (m->cap - 1)) {
		size_t home = slot_of(m, m->keys[i]);

		if (((i - home) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {
			m->keys[hole] = m->keys[i];
			m->values[hole] = m->values[i];
			hole = i;
		}
	}
	m->keys[hole] = 0;
	m->len--;
}
