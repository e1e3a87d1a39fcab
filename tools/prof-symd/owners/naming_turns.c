/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/owners/naming_turns.h"

#include <stddef.h>
#include "common/base/bytes/numbers.h"

/* Places of entries in `at`. */
#define OTHERS NAMING_TURNS_OWNERS
#define NOWHERE UINT32_MAX
#define LITTLE_NS 20000000ull /* who spent this much may have to pause for the whole time */

/* Returns the place of an owner's entry; NOWHERE: it has none. */
static uint32_t place_of(const struct naming_turns *t, uint64_t owner)
{
	for (uint32_t i = 0; i < t->len; i++)
		if (t->at[i].owner == owner)
			return i;
	return t->len == NAMING_TURNS_OWNERS ? OTHERS : NOWHERE;
}

/* Returns the entry of an owner; NULL: it has none. */
static const struct naming_turn *find(const struct naming_turns *t, uint64_t owner)
{
	const uint32_t i = place_of(t, owner);

	return i == NOWHERE ? NULL : &t->at[i];
}

static uint64_t left_of(const struct naming_turn *u, uint64_t now_ns)
{
	const uint64_t since_ns = numbers_less(now_ns, u->since_ns);
	const uint64_t halvings = since_ns / NAMING_TURNS_HALF_NS;

	/* Interpolate linearly between two halvings. */
	const uint64_t all = 2 * NAMING_TURNS_HALF_NS, part = all - since_ns % NAMING_TURNS_HALF_NS;

	if (halvings >= 64)
		return 0;
	return (uint64_t)((unsigned __int128)(u->spent_ns >> halvings) * part / all);
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
	const uint32_t i = place_of(t, owner);

	if (i < OTHERS)
		return &t->at[i];
	struct naming_turn *u = t->len < NAMING_TURNS_OWNERS ? &t->at[t->len++] : least(t, now_ns);

	if (!u)
		return &t->at[OTHERS];
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

void naming_turns_pause(struct naming_turns *t, uint64_t owner, uint64_t ns, uint64_t now_ns)
{
	struct naming_turn *u = get(t, owner, now_ns);

	u->paused_until_ns = numbers_smaller(numbers_larger(u->paused_until_ns, now_ns) + ns,
					     now_ns + NAMING_TURNS_PAUSE_NS);
}

uint64_t naming_turns_paused_until(const struct naming_turns *t, uint64_t owner)
{
	const struct naming_turn *u = find(t, owner);

	return u ? u->paused_until_ns : 0;
}

unsigned naming_turns_rest_part(const struct naming_turns *t, uint64_t owner, unsigned parts,
				uint64_t now_ns)
{
	const uint64_t spent_ns = naming_turns_spent(t, owner, now_ns);
	uint64_t most_ns = LITTLE_NS;

	for (uint32_t i = 0; i < t->len; i++)
		most_ns = numbers_larger(most_ns, left_of(&t->at[i], now_ns));
	return spent_ns < most_ns ? (unsigned)(spent_ns * parts / most_ns) : parts;
}

bool naming_turns_over(const struct naming_turns *t, uint64_t owner, unsigned owners,
		       uint64_t now_ns)
{
	return naming_turns_spent(t, owner, now_ns) > NAMING_TURNS_BURST_NS / (owners ? owners : 1);
}

void naming_turns_note_slow(struct naming_turns *t, uint64_t owner, uint64_t now_ns)
{
	get(t, owner, now_ns)->slow_until_ns = now_ns + NAMING_TURNS_SLOW_NS;
}

bool naming_turns_was_slow(const struct naming_turns *t, uint64_t owner, uint64_t now_ns)
{
	const struct naming_turn *u = find(t, owner);

	return u && now_ns < u->slow_until_ns;
}

void naming_turns_enter(struct naming_turns *t, uint64_t owner, uint64_t now_ns)
{
	struct naming_turn *u = get(t, owner, now_ns);

	t->owners += u->queued++ == 0;
	t->queued++;
}

void naming_turns_leave(struct naming_turns *t, uint64_t owner)
{
	const uint32_t i = place_of(t, owner);

	if (i == NOWHERE)
		return;
	/* The sample may have come before its owner had an entry. */
	struct naming_turn *u = &t->at[t->at[i].queued ? i : OTHERS];

	if (!u->queued)
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
	return place_of(t, owner) == OTHERS ? NAMING_TURNS_NOBODY : owner;
}
