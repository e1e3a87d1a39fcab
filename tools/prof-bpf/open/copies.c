/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
#include "common/base/bytes/numbers.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/owners/owners.h"

int copies_init(struct copies *c, uint64_t max)
{
	*c = (struct copies){ .max = max };
	c->at = calloc(COPIES_MAX, sizeof(*c->at));
	return c->at ? 0 : -ENOMEM;
}

void copies_done(struct copies *c)
{
	copies_charge(c, NULL);
	for (unsigned i = 0; i < c->count; i++)
		closing_give(c->at[i].probe);
	free(c->at);
	*c = (struct copies){ .at = NULL };
}

void copies_charge(struct copies *c, struct owners *owners)
{
	for (unsigned i = 0; c->owners && i < c->count; i++) {
		if (c->at[i].owner)
			owner_release(c->owners, c->at[i].owner, OWNER_COPIES, c->at[i].bytes);
		c->at[i].owner = NULL;
	}
	c->owners = owners;
}

static void drop(struct copies *c, unsigned i)
{
	struct copy_kept *k = &c->at[i];

	closing_give(k->probe);
	if (c->owners && k->owner)
		owner_release(c->owners, k->owner, OWNER_COPIES, k->bytes);
	c->bytes -= k->bytes;
	*k = c->at[--c->count];
}

static void look(struct copies *c)
{
	/* Each reader's open file has a shared lock, so this only succeeds if there is none. */
	for (unsigned i = c->count; i-- > 0;)
		if (flock(c->at[i].probe, LOCK_EX | LOCK_NB) == 0)
			drop(c, i);
}

void copies_look(struct copies *c, uint64_t now_ns)
{
	if (!c->count || now_ns - c->looked_ns < COPIES_LOOK_NS)
		return;
	c->looked_ns = now_ns;
	look(c);
}

static uint64_t left(const struct copies *c, uint64_t of)
{
	const uint64_t used = c->bytes + c->reserved;

	return c->count < COPIES_MAX && used < of ? of - used : 0;
}

/* Returns all free space while there is plenty, otherwise what the owner's share allows. */
static uint64_t share(const struct copies *c, struct owner *owner)
{
	const uint64_t rest = left(c, c->max);

	if (!c->owners || !owner)
		return rest;
	const uint64_t all = owners_share(c->owners, owner, OWNER_COPIES, c->max),
		       has = owner->held[OWNER_COPIES];
	/* A half of all is kept for other owners, until they come. */
	const uint64_t fair = numbers_smaller(all, c->max / 2);
	const uint64_t more = has < fair ? fair - has : 0;

	return numbers_smaller(more, rest);
}

uint64_t copies_room(struct copies *c, struct owner *owner)
{
	uint64_t room = share(c, owner);

	if (room < COPIES_LEAST || room < c->max / 4) {
		look(c);
		room = share(c, owner);
	}
	if (room >= COPIES_LEAST)
		return room;
	if (c->owners && owner)
		owner_refuse(owner, OWNER_COPIES, 1);
	return 0;
}

void copies_add(struct copies *c, int probe, uint64_t bytes, struct owner *owner)
{
	/* copies_room has left a free element, unless several copies were made at the same time. */
	if (c->count == COPIES_MAX) {
		closing_give(probe);
		return;
	}
	if (!c->owners)
		owner = NULL;
	c->at[c->count++] = (struct copy_kept){ .probe = probe, .bytes = bytes, .owner = owner };
	c->bytes += bytes;
	if (owner)
		owner_hold(c->owners, owner, OWNER_COPIES, bytes);
}
