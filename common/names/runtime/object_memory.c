/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/runtime/object_memory.h"

#include <errno.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"

void object_memory_done(struct object_memory *m)
{
	buf_done(&m->bytes);
	free(m->pieces);
	*m = (struct object_memory){ 0 };
}

/* Makes space for one more piece. */
static int grow(struct object_memory *m)
{
	const unsigned cap = m->cap ? m->cap * 2 : 4;

	if (m->count < m->cap)
		return 0;
	struct object_memory_piece *p = reallocarray(m->pieces, cap, sizeof(*p));

	if (!p)
		return -ENOMEM;
	m->pieces = p;
	m->cap = cap;
	return 0;
}

int object_memory_get(struct object_memory *m, uint64_t address, uint32_t n, uint32_t guess,
		      const uint8_t **ret)
{
	struct object_memory_piece *grown = NULL;

	for (unsigned i = 0; i < m->count; i++) {
		struct object_memory_piece *p = &m->pieces[i];

		if (address < p->address || address - p->address >= p->wanted)
			continue;
		uint64_t skip = address - p->address;

		if (p->read && skip + n <= p->have) {
			*ret = m->bytes.data + p->at + skip;
			return 0;
		}
		/* This piece was cut off, perhaps where the object at its beginning ends. Another
		 * one behind it must be requested by its own address. */
		if (p->read && p->have < p->wanted) {
			if (skip == 0)
				return OBJECT_MEMORY_NONE;
			continue;
		}
		if (skip + n <= p->wanted)
			return OBJECT_MEMORY_WANTED;
		if (skip == 0)
			grown = p;
	}
	if (m->whole) {
		m->lacked = true;
		return OBJECT_MEMORY_NONE;
	}
	if (guess < n)
		guess = n;
	if (address == 0 || address + guess < address || n == 0)
		return OBJECT_MEMORY_NONE;
	if (guess > OBJECT_MEMORY_BYTES - m->total)
		guess = OBJECT_MEMORY_BYTES - m->total;
	if (guess < n || (!grown && m->count == OBJECT_MEMORY_PIECES))
		return OBJECT_MEMORY_NONE;
	if (!grown && grow(m))
		return OBJECT_MEMORY_NONE;
	m->total += guess;
	if (!grown)
		grown = &m->pieces[m->count++];
	*grown = (struct object_memory_piece){ .address = address, .wanted = guess };
	return OBJECT_MEMORY_WANTED;
}

struct span object_memory_have(const struct object_memory *m, uint64_t address, uint32_t n)
{
	for (unsigned i = 0; i < m->count; i++) {
		const struct object_memory_piece *p = &m->pieces[i];
		const uint64_t skip = address - p->address;

		if (p->read && address >= p->address && skip < p->have)
			return (struct span){ .data = m->bytes.data + p->at + skip,
					      .len = n < p->have - skip ? n : p->have - skip };
	}
	return (struct span){ 0 };
}

struct object_memory *object_memory_other(const struct object_memory *m, uint64_t address,
					  uint64_t check)
{
	return m->other ? m->other(m->other_ctx, address, check) : NULL;
}

bool object_memory_next(const struct object_memory *m, unsigned *i)
{
	while (*i < m->count && m->pieces[*i].read)
		(*i)++;
	return *i < m->count;
}

int object_memory_put(struct object_memory *m, unsigned i, struct span bytes)
{
	struct object_memory_piece *p = &m->pieces[i];
	size_t n = numbers_smaller(bytes.len, p->wanted);
	int r = n ? buf_append(&m->bytes, bytes.data, n) : 0;

	if (r)
		return r;
	p->read = true;
	p->have = (uint32_t)n;
	p->at = (uint32_t)(m->bytes.len - n);
	return 0;
}

int object_memory_add(struct object_memory *m, uint64_t address, struct span bytes)
{
	if (m->count == OBJECT_MEMORY_PIECES || bytes.len == 0 ||
	    bytes.len > OBJECT_MEMORY_BYTES - m->total)
		return 0;

	const int r = grow(m);

	if (r)
		return r;
	m->total += (uint32_t)bytes.len;
	m->pieces[m->count++] = (struct object_memory_piece){ .address = address,
							      .wanted = (uint32_t)bytes.len };
	return object_memory_put(m, m->count - 1, bytes);
}
