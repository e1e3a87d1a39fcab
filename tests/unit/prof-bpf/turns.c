/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/owners/turns.h"

#include <criterion/criterion.h>

#define MS 1000000ull
#define SAVED (100 * MS)
#define LITTLE (1 * MS)

static const struct turns turns = {
	.resource = OWNER_MAPS_CPU,
	.owner = { OWNER_BUDGET_MAPS, 10 },
	.small = { OWNER_BUDGET_SMALL_MAPS, 20 },
	.all_part = 5,
	.pace = 1,
	.saved_ns = SAVED,
	.little_ns = LITTLE,
};
static const uint64_t now = 1000 * MS;
static struct owner busy, calm;
static uint64_t all;

static bool may(const struct owner *w, bool small, uint64_t at_ns)
{
	return turns_may(&turns, w, small, all, 0, at_ns);
}

Test(turns, an_owner_waits_until_its_part_covers_what_it_spent)
{
	turns_spend(&turns, &busy, false, &all, 15 * MS, now);
	/* 15 ms cost 150 ms, of which 100 ms were saved. */
	cr_expect_not(may(&busy, false, now + 50 * MS - 1));
	cr_expect(may(&busy, false, now + 50 * MS));
	cr_expect(may(&calm, false, now));
}

Test(turns, small_work_has_another_part)
{
	turns_spend(&turns, &busy, false, &all, 15 * MS, now);
	cr_expect(may(&busy, true, now));
	turns_spend(&turns, &busy, true, &all, 6 * MS, now);
	cr_expect_not(may(&busy, true, now));
	cr_expect(may(&busy, true, now + 20 * MS));
	cr_expect_not(may(&busy, false, now + 20 * MS));
}

Test(turns, without_a_part_for_small_work_it_waits_too)
{
	struct turns plain = turns;

	plain.small = (struct turns_part){ 0 };
	turns_spend(&plain, &busy, true, &all, 15 * MS, now);
	cr_expect_not(turns_may(&plain, &busy, true, all, 0, now));
}

Test(turns, only_owners_who_spent_little_may_exceed_the_common_part)
{
	struct owner third = { 0 };

	turns_spend(&turns, &busy, false, &all, 40 * MS, now);
	turns_spend(&turns, &calm, false, &all, LITTLE, now);
	turns_spend(&turns, &third, false, &all, 2 * LITTLE, now);
	cr_expect(may(&calm, false, now));
	cr_expect_not(may(&third, false, now));
	cr_expect(may(&third, false, now + 120 * MS));
}

Test(turns, work_may_be_ahead_of_the_time_that_pays_for_it)
{
	turns_spend(&turns, &busy, false, &all, 15 * MS, now);
	cr_expect(turns_may(&turns, &busy, false, all, 50 * MS, now));
	cr_expect_not(turns_may(&turns, &busy, false, all, 50 * MS - 1, now));
}

Test(turns, the_pace_divides_all_parts)
{
	struct turns slow = turns;

	slow.pace = 4;
	turns_spend(&slow, &busy, false, &all, 15 * MS, now);
	/* 15 ms cost 600 ms, of which 100 ms were saved. */
	cr_expect_not(may(&busy, false, now + 500 * MS - 1));
	cr_expect(may(&busy, false, now + 500 * MS));
	turns_spend(&slow, &calm, false, &all, 2 * MS, now);
	cr_expect_not(may(&calm, false, now + 100 * MS));
}
