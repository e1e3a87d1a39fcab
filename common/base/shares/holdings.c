/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/shares/holdings.h"

/* Returns NULL if the owner has no place of its own. */
static const struct holdings_owner *find(const struct holdings *r, uint64_t owner)
{
	for (uint32_t i = 0; i < r->len; i++)
		if (r->at[i].owner == owner)
			return &r->at[i];
	return NULL;
}

size_t holdings_of(const struct holdings *r, uint64_t owner)
{
	const struct holdings_owner *o = find(r, owner);

	return o ? o->held : r->len == HOLDINGS_OWNERS ? r->others.held : 0;
}

void holdings_take(struct holdings *r, uint64_t owner, size_t n)
{
	struct holdings_owner *o = (struct holdings_owner *)find(r, owner);

	if (!n)
		return;
	if (!o && r->len < HOLDINGS_OWNERS) {
		o = &r->at[r->len++];
		*o = (struct holdings_owner){ .owner = owner };
	}
	(o ? o : &r->others)->held += n;
	r->held += n;
}

void holdings_give(struct holdings *r, uint64_t owner, size_t n)
{
	struct holdings_owner *o = (struct holdings_owner *)find(r, owner);

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

bool holdings_admits(const struct holdings *r, uint64_t owner, size_t places)
{
	return r->held < places && holdings_of(r, owner) < places - r->held;
}

bool holdings_is_small(const struct holdings *r, uint64_t owner)
{
	return holdings_of(r, owner) < r->held / (r->len + (r->others.held > 0) + !r->held);
}

bool holdings_gives_way(const struct holdings *r, uint64_t owner, uint64_t *ret)
{
	const struct holdings_owner *most = NULL;

	for (uint32_t i = 0; i < r->len; i++)
		if (!most || r->at[i].held > most->held)
			most = &r->at[i];
	if (!most || most->held <= holdings_of(r, owner) + 1)
		return false;
	*ret = most->owner;
	return true;
}
