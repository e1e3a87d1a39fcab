/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/turns.h"

#include <stddef.h>

static const struct turn *find(const struct turns *t, uint32_t user)
{
	for (unsigned i = 0; i < TURNS_USERS; i++)
		if (t->at[i].used && t->at[i].user == user)
			return &t->at[i];
	return NULL;
}

static uint64_t left_of(const struct turn *u, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns > u->since_ns ? now_ns - u->since_ns : 0;
	const uint64_t earned_ns = since_ns / 1000 * TURNS_PERMILLE;

	return u->spent_ns > earned_ns ? u->spent_ns - earned_ns : 0;
}

/* NULL: all places are taken by users whose samples are in the queue. */
static struct turn *get(struct turns *t, uint32_t user, uint64_t now_ns)
{
	struct turn *u = (struct turn *)find(t, user);

	if (u)
		return u;
	for (unsigned i = 0; i < TURNS_USERS; i++) {
		struct turn *o = &t->at[i];

		if (o->queued)
			continue;
		if (!u || !o->used || (u->used && left_of(o, now_ns) < left_of(u, now_ns)))
			u = o;
	}
	if (u)
		*u = (struct turn){ .user = user, .used = true, .since_ns = now_ns };
	return u;
}

void turns_spend(struct turns *t, uint32_t user, uint64_t ns, uint64_t now_ns)
{
	struct turn *u = get(t, user, now_ns);

	if (!u)
		return;
	u->spent_ns = left_of(u, now_ns) + ns;
	u->since_ns = now_ns;
}

uint64_t turns_spent(const struct turns *t, uint32_t user, uint64_t now_ns)
{
	const struct turn *u = find(t, user);

	return u ? left_of(u, now_ns) : 0;
}

bool turns_over(const struct turns *t, uint32_t user, unsigned users, uint64_t now_ns)
{
	return turns_spent(t, user, now_ns) > TURNS_BURST_NS / (users ? users : 1);
}

void turns_enter(struct turns *t, uint32_t user, uint64_t now_ns)
{
	struct turn *u = get(t, user, now_ns);

	if (!u)
		return;
	t->users += u->queued++ == 0;
	t->queued++;
}

void turns_leave(struct turns *t, uint32_t user)
{
	struct turn *u = (struct turn *)find(t, user);

	if (!u || !u->queued)
		return;
	t->users -= --u->queued == 0;
	t->queued--;
}

bool turns_others(const struct turns *t, uint32_t user)
{
	const struct turn *u = find(t, user);

	return t->queued > (u ? u->queued : 0);
}

bool turns_lose(struct turns *t, uint32_t user, uint64_t now_ns)
{
	struct turn *u = get(t, user, now_ns);

	return u && u->unnamed++ == 0;
}
