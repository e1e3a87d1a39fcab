/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/gathering.h"

#include <criterion/criterion.h>

#define MS 1000000ull

static struct gathering g;

/* For how many ms records that come now are gathered. */
static uint64_t gathers_ms(uint64_t now_ns, unsigned hz)
{
	gathering_begin(&g, now_ns, hz);
	const uint64_t ms = (g.due_ns - now_ns) / MS;

	cr_assert(!gathering_is_due(&g, now_ns, false));
	cr_assert(gathering_is_due(&g, g.due_ns, false));
	return ms;
}

/* Takes records when they are due, which takes this many ms. Returns the time. */
static uint64_t take(uint64_t ms)
{
	const uint64_t began_ns = g.due_ns;

	gathering_end(&g, began_ns, began_ns + ms * MS);
	return began_ns + ms * MS;
}

Test(gathering, records_gather_for_a_part_of_the_period_within_bounds)
{
	cr_assert_eq(gathers_ms(MS, 20), 10);
	cr_assert_eq(gathers_ms(MS, 50), 4);
	cr_assert_eq(gathers_ms(MS, 1), 10);
	cr_assert_eq(gathers_ms(MS, 1999), 1);
	cr_assert_eq(gathers_ms(MS, 0), 1, "it is urgent");
}

Test(gathering, after_a_new_file_records_are_taken_soon_for_a_while)
{
	gathering_new_file(&g, 1000 * MS);
	cr_assert_eq(gathers_ms(1100 * MS, 20), 1);
	cr_assert_eq(gathers_ms(1300 * MS, 20), 10);
}

Test(gathering, a_ring_that_fills_ends_it_and_records_are_taken_soon_for_a_while)
{
	cr_assert_eq(gathers_ms(1000 * MS, 20), 10);
	cr_assert(gathering_is_due(&g, 1003 * MS, true));
	gathering_end(&g, 1003 * MS, 1004 * MS);
	cr_assert_eq(gathers_ms(1500 * MS, 20), 1);
	/* A new file does not shorten that wait. */
	gathering_new_file(&g, 1510 * MS);
	cr_assert_eq(gathers_ms(1900 * MS, 20), 1);
	cr_assert_eq(gathers_ms(2100 * MS, 20), 10);
}

Test(gathering, records_that_took_long_gather_no_longer_than_they_must)
{
	gathers_ms(1000 * MS, 20);
	take(2);
	cr_assert_eq(gathers_ms(1100 * MS, 20), 10);
	cr_assert_eq(gathers_ms(take(4) + MS, 20), 1);
}

Test(gathering, nothing_is_due_without_a_record)
{
	cr_assert_eq(gathering_patience_ms(&g, 5 * MS), -1);
	cr_assert(!gathering_is_due(&g, 5 * MS, true));
	gathers_ms(5 * MS, 20);
	cr_assert_eq(gathering_patience_ms(&g, 5 * MS), 4, "it looks at the rings");
	cr_assert_eq(gathering_patience_ms(&g, 14 * MS), 2);
	cr_assert_eq(gathering_patience_ms(&g, 15 * MS), 0);
	take(1);
	cr_assert_eq(gathering_patience_ms(&g, 20 * MS), -1);
}

Test(gathering, records_without_end_take_a_part_of_the_time)
{
	uint64_t now_ns = 10000 * MS, spent_ms = 0;

	while (now_ns < 20000 * MS) {
		gathers_ms(now_ns, 20);
		now_ns = take(5);
		spent_ms += 5;
		while (g.rests && !gathering_rested(&g, now_ns))
			now_ns += 50 * MS;
	}
	cr_assert(spent_ms > 1000 && spent_ms < 10000 / 4 + 200, "%lu", spent_ms);
}
