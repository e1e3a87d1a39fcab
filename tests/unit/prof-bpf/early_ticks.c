/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/early_ticks.h"

#include <criterion/criterion.h>

#define MS 1000000ull
#define SOON (12 * MS)
#define NEXT (40 * MS)

static struct early_ticks h;

Test(early_ticks, a_new_file_makes_the_next_ticks_early)
{
	cr_expect(!early_ticks_begin(&h));
	cr_expect(!early_ticks_next(&h));
	h.new_files = true;
	cr_assert(early_ticks_begin(&h));
	cr_expect(!early_ticks_begin(&h), "it was told once");
	for (int i = 1; i < EARLY_TICKS_TURNS; i++)
		cr_expect(early_ticks_next(&h));
	cr_expect(!early_ticks_next(&h));
	cr_expect(!early_ticks_next(&h));
}

Test(early_ticks, another_file_begins_anew)
{
	h.new_files = true;
	cr_assert(early_ticks_begin(&h));
	cr_assert(early_ticks_next(&h));
	h.new_files = true;
	cr_assert(early_ticks_begin(&h));
	cr_expect_eq(h.turns, EARLY_TICKS_TURNS);
}

Test(early_ticks, a_tick_that_comes_soon_anyway_costs_nothing)
{
	cr_expect(!early_ticks_may(&h, 1000 * MS, SOON, SOON));
	cr_expect_eq(h.paid_ns, 0);
}

Test(early_ticks, files_without_end_get_a_burst_and_then_ten_ticks_a_second)
{
	uint64_t now = 1000 * MS;
	unsigned early = 0;

	while (early_ticks_may(&h, now, NEXT, SOON))
		early++;
	cr_expect_eq(early, EARLY_TICKS_BURST + 1);
	early = 0;
	for (; now <= 11000 * MS; now += 10 * MS)
		early += early_ticks_may(&h, now, NEXT, SOON);
	cr_expect_eq(early, 100);
	/* Unused early ticks do not accumulate. */
	now += 60000 * MS;
	early = 0;
	while (early_ticks_may(&h, now, NEXT, SOON))
		early++;
	cr_expect_eq(early, EARLY_TICKS_BURST + 1);
}
