/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/owners/naming_turns.h"

#include <stddef.h>

/* Returns the entry of an owner; NULL: it has none. */
static const struct naming_turn *find(const struct naming_turns *t, uint64_t owner)
{
	for (unsigned i = 0; i < t->len; i++)
		if (t->at[i].owner == owner)
			return &t->at[i];
	return t->len == NAMING_TURNS_OWNERS ? &t->others : NULL;
}

static uint64_t left_of(const struct naming_turn *u, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns > u->since_ns ? now_ns - u->since_ns : 0;
	const uint64_t halvings = since_ns / NAMING_TURNS_HALF_NS;
	const double of_next = (double)(since_ns % NAMING_TURNS_HALF_NS) /
			       (double)NAMING_TURNS_HALF_NS;

	/* Interpolate linearly between two halvings. */
	return halvings < 64 ? (uint64_t)((double)(u->spent_ns >> halvings) * (1 - of_next / 2))
			     : 0;
}

/* Returns the owner without samples in the queue who spent least; NULL: there is none. */
static struct naming_turn *least(struct naming_turns *t, uint64_t now_ns)
{
	struct naming_turn *ret = NULL;

	for (struct naming_turn *o = t->at; o < t->at + t->len; o++)
		if (!o->queued && (!ret || left_of(o, now_ns) < left_of(ret, now_ns)))
			ret = o;
	return ret;
}

static struct naming_turn *get(struct naming_turns *t, uint64_t owner, uint64_t now_ns)
{
	struct naming_turn *u = (struct naming_turn *)find(t, owner);

	if (u && u != &t->others)
		return u;
	u = t->len < NAMING_TURNS_OWNERS ? &t->at[t->len++] : least(t, now_ns);
	if (!u)
		return &t->others;
	*u = (struct naming_turn){ .owner = owner, .since_ns = now_ns };
	return u;
}

void naming_turns_spend(struct naming_turns *t, uint64_t owner, uint64_t ns, uint64_t now_ns)
{
	struct naming_turn *u = get(t, owner, now_ns);

	u->spent_ns = left_of(u, now_ns) + ns;
	u->since_ns = now_ns;
}

uint64_t naming_turns_spent(const struct naming_turns *t, uint64_t owner, uint64_t now_ns)
{
	const struct naming_turn *u = find(t, owner);

	return u ? left_of(u, now_ns) : 0;
}

bool naming_turns_over(const struct naming_turns *t, uint64_t owner, unsigned owners,
		       uint64_t now_ns)
{
	return naming_turns_spent(t, owner, now_ns) > NAMING_TURNS_BURST_NS / (owners ? owners : 1);
}

void naming_turns_enter(struct naming_turns *t, uint64_t owner, uint64_t now_ns)
{
	struct naming_turn *u = get(t, owner, now_ns);

	t->owners += u->queued++ == 0;
	t->queued++;
}

void naming_turns_leave(struct naming_turns *t, uint64_t owner)
{
	struct naming_turn *u = (struct naming_turn *)find(t, owner);

	/* The sample may have come before its owner had an entry. */
	if (u && !u->queued)
		u = &t->others;
	if (!u || !u->queued)
		return;
	t->owners -= --u->queued == 0;
	t->queued--;
}

bool naming_turns_others(const struct naming_turns *t, uint64_t owner)
{
	const struct naming_turn *u = find(t, owner);

	return t->queued > (u ? u->queued : 0);
}

bool naming_turns_lose(struct naming_turns *t, uint64_t owner, uint64_t now_ns)
{
	struct naming_turn *u = get(t, owner, now_ns);

	return u->unnamed++ == 0;
}

void naming_turns_rest(struct naming_turns *t, uint64_t owner, uint64_t until_ns, uint64_t now_ns)
{
	get(t, owner, now_ns)->rests_until_ns = until_ns;
}

uint64_t naming_turns_rests_until(const struct naming_turns *t, uint64_t owner)
{
	const struct naming_turn *u = find(t, owner);

	return u ? u->rests_until_ns : 0;
}

uint64_t naming_turns_key(const struct naming_turns *t, uint64_t owner)
{
	const struct naming_turn *u = find(t, owner);

	return u == &t->others ? NAMING_TURNS_NOBODY : owner;
}
