/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/room.h"

#include <stddef.h>

static const struct room_owner *find(const struct room *r, uint64_t owner)
{
	for (uint32_t i = 0; i < r->len; i++)
		if (r->at[i].owner == owner)
			return &r->at[i];
	return NULL;
}

void room_take(struct room *r, uint64_t owner)
{
	struct room_owner *o = (struct room_owner *)find(r, owner);

	if (!o && r->len < ROOM_OWNERS) {
		o = &r->at[r->len++];
		*o = (struct room_owner){ .owner = owner };
	}
	(o ? o : &r->others)->held++;
	r->held++;
}

void room_give(struct room *r, uint64_t owner)
{
	struct room_owner *o = (struct room_owner *)find(r, owner);

	if (!o)
		o = &r->others;
	if (!o->held)
		return;
	r->held--;
	if (--o->held == 0 && o != &r->others)
		*o = r->at[--r->len];
}

bool room_gives_way(const struct room *r, uint64_t owner, uint64_t *ret)
{
	const struct room_owner *own = find(r, owner), *most = NULL;

	if (!own && r->len == ROOM_OWNERS)
		own = &r->others;
	for (uint32_t i = 0; i < r->len; i++)
		if (!most || r->at[i].held > most->held)
			most = &r->at[i];
	if (!most || most->held <= (own ? own->held : 0) + 1)
		return false;
	*ret = most->owner;
	return true;
}
