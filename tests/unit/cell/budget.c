/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/budget/budget.h"
#include <criterion/criterion.h>

#define BOTH (BUDGET_SEND | BUDGET_METRICS)

static uint64_t sum(const struct budget *b)
{
	return b->bpf + b->deltas + b->symd + b->export + b->launcher + b->send + b->metrics +
	       b->maps + b->spare;
}

Test(budget, the_shares_add_up_to_the_limit)
{
	for (uint64_t limit = BUDGET_LEAST; limit <= 1ull << 40; limit += limit / 3)
		for (unsigned extra = 0; extra <= BOTH; extra++) {
			struct budget b;

			budget_split(limit, extra, &b);
			cr_assert_eq(sum(&b), limit, "%lu", limit);
			cr_assert_lt(b.spare, limit / 10, "%lu", limit);
			cr_assert_eq(b.send > 0, (extra & BUDGET_SEND) != 0);
			cr_assert_eq(b.metrics > 0, (extra & BUDGET_METRICS) != 0);
		}
}

Test(budget, a_tool_that_the_run_lacks_takes_nothing_of_the_others)
{
	struct budget without, with;

	budget_split(BUDGET_DEFAULT, 0, &without);
	budget_split(BUDGET_DEFAULT, BOTH, &with);
	cr_assert_eq(without.send + without.queues + without.metrics, 0);
	cr_assert_lt(with.symd, without.symd);
	cr_assert_lt(with.queues, with.send);
	cr_assert_gt(with.queues, 4 << 20);
	cr_assert_eq(without.requests, 0);
	cr_assert_gt(with.requests, 6 << 20);
	cr_assert_lt(with.requests + with.model, with.export);
}

Test(budget, parts_fit_into_their_tools_share)
{
	for (uint64_t limit = BUDGET_LEAST; limit <= 1ull << 36; limit += limit / 3)
		for (unsigned extra = 0; extra <= BOTH; extra++) {
			struct budget b;

			budget_split(limit, extra, &b);
			cr_assert_lt(b.sideband + 2 * b.ring, b.maps);
			cr_assert_leq(b.interned + b.outbox + b.deferred, b.bpf - b.bpf / 8);
			cr_assert_leq(b.programs + b.dwarf + b.generated + b.objects +
					      b.definitions + b.names,
				      b.symd);
			cr_assert_lt(b.model, b.export);
			cr_assert_geq(b.definitions, 2 * b.interned, "an epoch of prof-bpf's fits");
			cr_assert(!b.send || b.queues < b.send);
		}
}

Test(budget, unwanted_shares_go_to_the_others)
{
	struct budget_claim c[] = { { .sure = 50, .wanted = 10 },
				    { .sure = 30, .wanted = 70 },
				    { .sure = 20, .wanted = 5 } };

	cr_assert_eq(budget_settle(100, c, 3), 15);
	cr_assert_eq(c[0].granted, 10);
	cr_assert_eq(c[1].granted, 70);
	cr_assert_eq(c[2].granted, 5);
}

Test(budget, a_large_claim_leaves_the_guaranteed_shares)
{
	struct budget_claim c[] = { { .sure = 40, .wanted = UINT64_MAX },
				    { .sure = 40, .wanted = 40 },
				    { .sure = 10, .wanted = 1 } };

	cr_assert_eq(budget_settle(100, c, 3), 0);
	cr_assert_eq(c[0].granted, 59);
	cr_assert_eq(c[1].granted, 40);
	cr_assert_eq(c[2].granted, 1);
}

Test(budget, the_smallest_of_several_wishes_is_met_first)
{
	struct budget_claim c[] = { { .sure = 10, .wanted = 100 },
				    { .sure = 10, .wanted = 22 },
				    { .sure = 10, .wanted = 100 },
				    { .sure = 10, .wanted = 0 } };

	cr_assert_leq(budget_settle(100, c, 4), 1);
	cr_assert_eq(c[0].granted, 39);
	cr_assert_eq(c[1].granted, 22);
	cr_assert_eq(c[2].granted, 39);
	cr_assert_eq(c[3].granted, 0);
}
