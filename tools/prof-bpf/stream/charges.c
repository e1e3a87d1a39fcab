/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/charges.h"

#include <stdlib.h>
#include <utlist.h>
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/stream/outbox.h"

#define COUNT_MAX 8192
/* How many of the last charges are searched for one of the same owner. */
#define NEAR 16
#define NEAR_BYTES 65536 /* bytes of the stream that these charges may span */
/* Eighths of the outbox that are reserved for definitions and answers. */
#define RESERVE_EIGHTHS 1ul

struct charge {
	struct owner *owner;
	uint64_t bytes, end;
	struct charge *prev, *next;
};

void charges_flushed(struct charges *c, size_t bytes)
{
	c->flushed += bytes;
}

uint64_t charges_at(const struct charges *c, size_t packed)
{
	return c->flushed + packed;
}

/* Returns the owner's charge near the end of the stream; NULL: none. */
static struct charge *near_end(const struct charges *c, const struct owner *w, uint64_t to)
{
	struct charge *q = c->list ? c->list->prev : NULL;

	for (unsigned i = 0; q && i < NEAR && q->end + NEAR_BYTES > to; i++, q = q->prev) {
		if (q->owner == w)
			return q;
		if (q == c->list)
			break;
	}
	return NULL;
}

void charges_add(struct charges *c, struct owner *w, uint64_t from, uint64_t to)
{
	if (!c->owners || !w || to <= from)
		return;
	w->caused += to - from;
	struct charge *q = near_end(c, w, to);

	if (!q) {
		q = c->count < COUNT_MAX ? calloc(1, sizeof(*q)) : NULL;
		if (!q)
			return;
		q->owner = w;
		q->end = to;
		DL_APPEND(c->list, q);
		c->count++;
	}
	q->bytes += to - from;
	owner_hold(c->owners, w, OWNER_OUTBOX, to - from);
}

static void release(struct charges *c, struct charge *q)
{
	owner_release(c->owners, q->owner, OWNER_OUTBOX, q->bytes);
	DL_DELETE(c->list, q);
	c->count--;
	free(q);
}

void charges_sent(struct charges *c, const struct outbox *o)
{
	while (c->list && c->list->end + o->bytes <= c->flushed)
		release(c, c->list);
}

bool charges_may(const struct charges *c, const struct outbox *o, const struct owner *w)
{
	if (!outbox_pressed(o))
		return true;
	if (!c->owners || !w || o->bytes > o->max - o->max / 8 * RESERVE_EIGHTHS)
		return false;
	return w->held[OWNER_OUTBOX] < owners_share(c->owners, w, OWNER_OUTBOX, o->max / 2);
}

void charges_done(struct charges *c)
{
	while (c->list)
		release(c, c->list);
	c->owners = NULL;
}
