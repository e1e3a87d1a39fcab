/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/memory.h"

void memory_done(struct memory *m)
{
	buf_done(&m->bytes);
	*m = (struct memory){ 0 };
}

int memory_get(struct memory *m, uint64_t address, uint32_t n, uint32_t guess, const uint8_t **ret)
{
	struct memory_piece *grown = NULL;

	for (unsigned i = 0; i < m->count; i++) {
		struct memory_piece *p = &m->pieces[i];

		if (address < p->address || address - p->address >= p->wanted)
			continue;
		uint64_t skip = address - p->address;

		if (p->read && skip + n <= p->have) {
			*ret = m->bytes.data + p->at + skip;
			return 0;
		}
		if (skip + n <= p->wanted)
			return p->read ? MEMORY_NONE : MEMORY_WANTED;
		if (p->read && p->have < p->wanted)
			return MEMORY_NONE;
		if (skip == 0)
			grown = p;
	}
	if (m->whole) {
		m->lacked = true;
		return MEMORY_NONE;
	}
	if (guess < n)
		guess = n;
	if (address == 0 || address + guess < address || n == 0)
		return MEMORY_NONE;
	if (guess > MEMORY_BYTES - m->total)
		guess = MEMORY_BYTES - m->total;
	if (guess < n || (!grown && m->count == MEMORY_PIECES))
		return MEMORY_NONE;
	m->total += guess;
	if (!grown)
		grown = &m->pieces[m->count++];
	*grown = (struct memory_piece){ .address = address, .wanted = guess };
	return MEMORY_WANTED;
}

bool memory_next(const struct memory *m, unsigned *i)
{
	while (*i < m->count && m->pieces[*i].read)
		(*i)++;
	return *i < m->count;
}

int memory_put(struct memory *m, unsigned i, struct span bytes)
{
	struct memory_piece *p = &m->pieces[i];
	size_t n = bytes.len < p->wanted ? bytes.len : p->wanted;
	int r = n ? buf_append(&m->bytes, bytes.data, n) : 0;

	if (r)
		return r;
	p->read = true;
	p->have = (uint32_t)n;
	p->at = (uint32_t)(m->bytes.len - n);
	return 0;
}

int memory_add(struct memory *m, uint64_t address, struct span bytes)
{
	if (m->count == MEMORY_PIECES || bytes.len == 0 || bytes.len > MEMORY_BYTES - m->total)
		return 0;
	m->total += (uint32_t)bytes.len;
	m->pieces[m->count++] = (struct memory_piece){ .address = address,
						       .wanted = (uint32_t)bytes.len };
	return memory_put(m, m->count - 1, bytes);
}
