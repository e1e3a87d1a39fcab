/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/walk_turns.h"

#include "common/base/system/clock.h"
#include "tools/prof-bpf/owners/turns.h"

static struct turns turns_of(const struct walk_turns *t)
{
	return (struct turns){
		.resource = OWNER_WALKS_CPU,
		.owner = { OWNER_BUDGET_WALKS, WALK_TURNS_OWNER_PART },
		.all_part = WALK_TURNS_ALL_PART,
		.pace = t->owners ? owners_pace(t->owners) : 1,
		.saved_ns = WALK_TURNS_SAVED_NS,
		.little_ns = WALK_TURNS_LITTLE_NS,
	};
}

uint64_t walk_turns_clock(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

bool walk_turns_may(const struct walk_turns *t, const struct owner *w, uint64_t now_ns)
{
	const struct turns turns = turns_of(t);

	return !w || turns_may(&turns, w, false, t->paid_ns, 0, now_ns);
}

bool walk_turns_may_last(const struct walk_turns *t, const struct owner *w, uint64_t now_ns)
{
	const struct turns turns = turns_of(t);

	return !w || turns_may(&turns, w, false, t->paid_ns, WALK_TURNS_DEBT_NS, now_ns);
}

void walk_turns_spend(struct walk_turns *t, struct owner *w, uint64_t ns, uint64_t now_ns)
{
	const struct turns turns = turns_of(t);

	t->tick_ns += ns;
	if (w)
		turns_spend(&turns, w, false, &t->paid_ns, ns, now_ns);
}

void walk_turns_tick(struct walk_turns *t)
{
	t->tick_ns = 0;
}

bool walk_turns_tick_is_over(const struct walk_turns *t)
{
	return t->tick_ns >= WALK_TURNS_TICK_NS;
}
