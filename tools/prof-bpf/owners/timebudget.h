/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget of time: how much of something costly may be done per time. It is one number, paid_ns:
 * when the time that passes covers all that was spent so far. Spending moves it on. Unused time is
 * saved up to a limit.
 *
 * Pure: times are CLOCK_MONOTONIC, in ns. A budget begins as 0.
 */
#ifndef PROF_BPF_OWNERS_TIMEBUDGET_H
#define PROF_BPF_OWNERS_TIMEBUDGET_H

#include <stdbool.h>
#include "common/base/bytes/numbers.h"

/* Pays for ns. saved_ns: up to this much unused time is saved. */
static inline void timebudget_pay(uint64_t *paid_ns, uint64_t ns, uint64_t saved_ns,
				  uint64_t now_ns)
{
	*paid_ns = numbers_larger(*paid_ns, numbers_less(now_ns, saved_ns)) + ns;
}

/* Whether the budget covers, at this time, all that was spent. */
static inline bool timebudget_covers(uint64_t paid_ns, uint64_t at_ns)
{
	return paid_ns <= at_ns;
}

#endif
