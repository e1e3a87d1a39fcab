/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/owners/turns.h"

#include "tools/prof-bpf/owners/timebudget.h"

/* Whether one of the owner's parts covers what it spent on this. */
static bool covers(const struct turns *t, const struct owner *w, bool small, uint64_t at_ns)
{
	return timebudget_covers(w->paid_ns[t->owner.budget], at_ns) ||
	       (small && t->small.part && timebudget_covers(w->paid_ns[t->small.budget], at_ns));
}

bool turns_may(const struct turns *t, const struct owner *w, bool small, uint64_t all_paid_ns,
	       uint64_t debt_ns, uint64_t now_ns)
{
	const uint64_t at_ns = now_ns + debt_ns;

	return covers(t, w, small, at_ns) && (timebudget_covers(all_paid_ns, at_ns) ||
					      owner_spent(w, t->resource, now_ns) <= t->little_ns);
}

void turns_spend(const struct turns *t, struct owner *w, bool small, uint64_t *all_paid_ns,
		 uint64_t ns, uint64_t now_ns)
{
	const bool own = covers(t, w, false, now_ns) || !small || !t->small.part;
	const struct turns_part *p = own ? &t->owner : &t->small;

	timebudget_pay(&w->paid_ns[p->budget], ns * p->part * t->pace, t->saved_ns, now_ns);
	timebudget_pay(all_paid_ns, ns * t->all_part * t->pace, t->saved_ns, now_ns);
	owner_spend(w, t->resource, ns, now_ns);
}
