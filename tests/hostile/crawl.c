/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/crawl.h"

#include <string.h>

#define PIECE 4096u
#define LONG (66u << 10) /* pieces for which one answer was not enough */

/* False: it is already in the set. */
static bool set_add(uint64_t *set, uint64_t size, uint64_t address)
{
	uint64_t h = address * 0x9e3779b97f4a7c15u >> 32;

	for (uint64_t i = 0; i < size; i++) {
		uint64_t *k = &set[(h + i) % size];

		if (*k == address)
			return false;
		if (!*k) {
			*k = address;
			return true;
		}
	}
	return false;
}

static void add(struct crawl *c, uint64_t address)
{
	if (address < 1 << 16 || address >> 47 || c->tail >= CRAWL_QUEUE - 1)
		return;
	if (set_add(c->known, CRAWL_QUEUE * 2, address))
		c->queue[c->tail++] = address;
}

void crawl_add(struct crawl *c, uint64_t address)
{
	add(c, address);
	add(c, address & ~(uint64_t)(PIECE - 1));
}

void crawl_take(struct crawl *c, uint64_t address, struct span bytes)
{
	const size_t n = strlen(c->secret);

	c->found += bytes.len && memmem(bytes.data, bytes.len, c->secret, n);
	for (size_t at = -address % 8; at + 8 <= bytes.len; at += 8) {
		uint64_t word;

		memcpy(&word, bytes.data + at, 8);
		c->bytes += 8ull * set_add(c->seen, CRAWL_SEEN, address + at);
		crawl_add(c, word);
	}
}

void crawl_answer(struct crawl *c, const struct msg_memory_answer *m)
{
	struct span rest = m->bytes, bytes;

	for (uint32_t i = 0; i < m->lengths.len && i < CRAWL_AT_ONCE; i++) {
		if (!span_take(&rest, (size_t)m->lengths.data[i], &bytes))
			return;
		crawl_take(c, c->asked[i], bytes);
		if (bytes.len == PIECE && c->lengths[i] == PIECE && c->long_tail < CRAWL_QUEUE)
			c->longs[c->long_tail++] = c->asked[i];
	}
}

uint32_t crawl_next(struct crawl *c)
{
	uint32_t n = 0;

	for (; n < CRAWL_AT_ONCE && c->head + n < c->tail; n++) {
		c->asked[n] = c->queue[c->head + n];
		c->lengths[n] = PIECE;
	}
	if (!n && c->long_head < c->long_tail) {
		c->asked[n] = c->longs[c->long_head];
		c->lengths[n++] = LONG;
	}
	return n;
}

void crawl_done(struct crawl *c, uint32_t n)
{
	if (c->lengths[0] == LONG)
		c->long_head++;
	else
		c->head += n;
}

void crawl_again(struct crawl *c)
{
	c->head = c->long_head = 0;
}

uint32_t crawl_left(const struct crawl *c)
{
	return c->tail - c->head + c->long_tail - c->long_head;
}
