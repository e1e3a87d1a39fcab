// SPDX-License-Identifier: Apache-2.0
#include "tools/prof-export/lives.h"

#include <criterion/criterion.h>

Test(lives, one_that_lives_on_leaves_no_gap)
{
	struct lives l = { 0 };

	lives_since(&l, 100);
	lives_until(&l, 250);
	lives_since(&l, 100); /* said again to another prof-symd */
	lives_until(&l, 900);
	lives_until(&l, 700);
	lives_conclude(&l, true, 950);
	cr_assert_eq(l.unsampled_ns, 0);
	cr_assert_eq(lives_sampled_ns(&l), 800);
	cr_assert_eq(lives_end_ns(&l), 900);
	cr_assert_eq(l.first_ns, 100);
}

/* A sample that came after the last word of its life is one that was taken. */
Test(lives, a_gap_begins_with_the_last_that_came_and_ends_when_the_next_samples)
{
	struct lives l = { 0 };

	lives_since(&l, 100);
	lives_until(&l, 300);
	lives_until(&l, 380);
	lives_next(&l);
	lives_next(&l); /* one that never sampled */
	lives_until(&l, 500);
	lives_since(&l, 1000);
	lives_until(&l, 2000);
	lives_conclude(&l, true, 2100);
	cr_assert_eq(l.unsampled_ns, 620);
	cr_assert_eq(lives_sampled_ns(&l), 1280);
	cr_assert_eq(lives_end_ns(&l), 2000);
}

Test(lives, one_that_went_before_the_end_is_missing_until_then)
{
	struct lives l = { 0 };

	lives_since(&l, 100);
	lives_until(&l, 300);
	l.run_until_ns = 1000;
	lives_conclude(&l, false, 0);
	cr_assert_eq(l.unsampled_ns, 700);
	cr_assert_eq(lives_end_ns(&l), 1000);
}

Test(lives, one_that_came_back_too_late_to_sample_is_missing_until_the_end)
{
	struct lives l = { 0 };

	lives_since(&l, 100);
	lives_until(&l, 300);
	lives_next(&l);
	lives_conclude(&l, true, 800);
	cr_assert_eq(l.unsampled_ns, 500);
}

/* Nobody says until when there would have been sampling. */
Test(lives, a_stream_that_was_cut_has_no_gap_at_its_end)
{
	struct lives l = { 0 };

	lives_since(&l, 100);
	lives_until(&l, 300);
	lives_conclude(&l, false, 0);
	cr_assert_eq(l.unsampled_ns, 0);
	cr_assert_eq(lives_end_ns(&l), 300);
}

Test(lives, a_stream_that_says_nothing_of_it_has_none)
{
	struct lives l = { 0 };

	lives_until(&l, 300);
	lives_next(&l);
	lives_until(&l, 400);
	lives_conclude(&l, true, 500);
	cr_assert_eq(l.unsampled_ns, 0);
	cr_assert_eq(lives_end_ns(&l), 0);
	cr_assert_eq(lives_sampled_ns(&l), 0);
}
