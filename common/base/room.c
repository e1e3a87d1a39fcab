/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/room.h"

/* Returns NULL if the owner has no place of its own. */
static const struct room_owner *find(const struct room *r, uint64_t owner)
{
	for (uint32_t i = 0; i < r->len; i++)
		if (r->at[i].owner == owner)
			return &r->at[i];
	return NULL;
}

size_t room_held(const struct room *r, uint64_t owner)
{
	const struct room_owner *o = find(r, owner);

	return o ? o->held : r->len == ROOM_OWNERS ? r->others.held : 0;
}

void room_take(struct room *r, uint64_t owner, size_t n)
{
	struct room_owner *o = (struct room_owner *)find(r, owner);

	if (!n)
		return;
	if (!o && r->len < ROOM_OWNERS) {
		o = &r->at[r->len++];
		*o = (struct room_owner){ .owner = owner };
	}
	(o ? o : &r->others)->held += n;
	r->held += n;
}

void room_give(struct room *r, uint64_t owner, size_t n)
{
	struct room_owner *o = (struct room_owner *)find(r, owner);

	/* The owner may have taken them while it had no place of its own. */
	if (!o || o->held < n)
		o = &r->others;
	if (n > o->held)
		n = o->held;
	o->held -= n;
	r->held -= n;
	if (!o->held && o != &r->others)
		*o = r->at[--r->len];
}

bool room_admits(const struct room *r, uint64_t owner, size_t places)
{
	return r->held < places && room_held(r, owner) < places - r->held;
}

bool room_is_small(const struct room *r, uint64_t owner)
{
	return room_held(r, owner) < r->held / (r->len + (r->others.held > 0) + !r->held);
}

bool room_gives_way(const struct room *r, uint64_t owner, uint64_t *ret)
{
	const struct room_owner *most = NULL;

	for (uint32_t i = 0; i < r->len; i++)
		if (!most || r->at[i].held > most->held)
			most = &r->at[i];
	if (!most || most->held <= room_held(r, owner) + 1)
		return false;
	*ret = most->owner;
	return true;
}
