/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/walk_turns.h"

#include "common/base/system/clock.h"
#include "tools/prof-bpf/owners/owners.h"

uint64_t walk_turns_clock(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Whether the budgets cover what was spent, at the latest at this time. */
static bool is_paid(const struct walk_turns *t, const struct owner *w, uint64_t at_ns,
		    uint64_t now_ns)
{
	return w->walks_paid_ns <= at_ns &&
	       (t->paid_ns <= at_ns ||
		owner_spent(w, OWNER_WALKS_CPU, now_ns) <= WALK_TURNS_LITTLE_NS);
}

bool walk_turns_may(const struct walk_turns *t, const struct owner *w, uint64_t now_ns)
{
	return !w || is_paid(t, w, now_ns, now_ns);
}

bool walk_turns_may_last(const struct walk_turns *t, const struct owner *w, uint64_t now_ns)
{
	return !w || is_paid(t, w, now_ns + WALK_TURNS_DEBT_NS, now_ns);
}

void walk_turns_spend(struct walk_turns *t, struct owner *w, uint64_t ns, uint64_t now_ns)
{
	t->tick_ns += ns;
	if (!w)
		return;
	owners_pay(&w->walks_paid_ns, ns * WALK_TURNS_OWNER_PART, WALK_TURNS_SAVED_NS, now_ns);
	owners_pay(&t->paid_ns, ns * WALK_TURNS_ALL_PART, WALK_TURNS_SAVED_NS, now_ns);
	owner_spend(w, OWNER_WALKS_CPU, ns, now_ns);
}

void walk_turns_tick(struct walk_turns *t)
{
	t->tick_ns = 0;
}

bool walk_turns_tick_is_over(const struct walk_turns *t)
{
	return t->tick_ns >= WALK_TURNS_TICK_NS;
}
