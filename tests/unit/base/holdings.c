/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/shares/holdings.h"

#include <criterion/criterion.h>

#define MAX 1200

static size_t held_by(const struct holdings *r, uint64_t owner)
{
	for (uint32_t i = 0; i < r->len; i++)
		if (r->at[i].owner == owner)
			return r->at[i].held;
	return 0;
}

/* Takes all that the owner can get of MAX places. */
static void fill(struct holdings *r, uint64_t owner)
{
	uint64_t whose;

	for (;;) {
		if (r->held == MAX) {
			if (!holdings_gives_way(r, owner, &whose))
				return;
			holdings_give(r, whose, 1);
		}
		holdings_take(r, owner, 1);
	}
}

Test(holdings, in_the_end_all_hold_the_same)
{
	struct holdings r = { 0 };

	fill(&r, 1);
	cr_expect_eq(held_by(&r, 1), MAX);
	for (uint64_t owner = 2; owner <= 20; owner++)
		fill(&r, owner);
	for (uint64_t owner = 1; owner <= 20; owner++)
		cr_expect_eq(held_by(&r, owner), MAX / 20, "%zu", held_by(&r, owner));
	cr_expect_eq(r.held, MAX);
	holdings_take(&r, 21, 1);
	cr_expect(holdings_is_small(&r, 21));
	cr_expect_not(holdings_is_small(&r, 1));
}

Test(holdings, an_owner_that_gave_all_back_is_forgotten)
{
	struct holdings r = { 0 };

	holdings_take(&r, 1, 1);
	holdings_take(&r, 2, 1);
	holdings_give(&r, 1, 1);
	cr_expect_eq(r.len, 1);
	cr_expect_eq(held_by(&r, 2), 1);
	holdings_give(&r, 1, 1);
	cr_expect_eq(r.held, 1);
}

Test(holdings, owners_without_a_place_count_as_one)
{
	struct holdings r = { 0 };

	for (uint64_t owner = 0; owner < HOLDINGS_OWNERS + 3; owner++)
		holdings_take(&r, owner, 1);
	cr_expect_eq(r.len, HOLDINGS_OWNERS);
	cr_expect_eq(r.others.held, 3);
	for (uint64_t owner = 0; owner < HOLDINGS_OWNERS + 3; owner++)
		holdings_give(&r, owner, 1);
	cr_expect_eq(r.held, 0);
	cr_expect_eq(r.len, 0);
}
