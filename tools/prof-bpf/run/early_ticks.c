/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/early_ticks.h"

#include "tools/prof-bpf/owners/timebudget.h"

bool early_ticks_begin(struct early_ticks *e)
{
	const bool any = e->new_files;

	e->new_files = false;
	if (any)
		e->turns = EARLY_TICKS_TURNS;
	return any;
}

bool early_ticks_next(struct early_ticks *e)
{
	if (!e->turns)
		return false;
	e->turns--;
	return e->turns > 0;
}

bool early_ticks_may(struct early_ticks *e, uint64_t now_ns, uint64_t next_ns, uint64_t soon_ns)
{
	if (!timebudget_covers(e->paid_ns, now_ns + EARLY_TICKS_BURST * EARLY_TICKS_NS) ||
	    next_ns <= soon_ns)
		return false;
	timebudget_pay(&e->paid_ns, EARLY_TICKS_NS, 0, now_ns);
	return true;
}
