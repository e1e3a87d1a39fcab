/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/figures/uptime.h"

#include <criterion/criterion.h>

Test(uptime, repeated_reports_of_one_life_leave_no_gap)
{
	struct uptime l = { 0 };

	uptime_since(&l, 100);
	uptime_until(&l, 250);
	uptime_since(&l, 100); /* repeated for another prof-symd */
	uptime_until(&l, 900);
	uptime_until(&l, 700);
	uptime_conclude(&l, true, 950);
	cr_assert_eq(l.unsampled_ns, 0);
	cr_assert_eq(uptime_sampled_ns(&l), 800);
	cr_assert_eq(uptime_end_ns(&l), 900);
	cr_assert_eq(l.first_ns, 100);
}

/* A sample that arrived after the last count of its life was also taken. */
Test(uptime, a_gap_lasts_from_the_last_sample_to_the_next_start)
{
	struct uptime l = { 0 };

	uptime_since(&l, 100);
	uptime_until(&l, 300);
	uptime_until(&l, 380);
	uptime_next(&l);
	uptime_next(&l); /* one that never sampled */
	uptime_until(&l, 500);
	uptime_since(&l, 1000);
	uptime_until(&l, 2000);
	uptime_conclude(&l, true, 2100);
	cr_assert_eq(l.unsampled_ns, 620);
	cr_assert_eq(uptime_sampled_ns(&l), 1280);
	cr_assert_eq(uptime_end_ns(&l), 2000);
}

Test(uptime, a_tool_gone_before_the_end_leaves_a_gap_up_to_it)
{
	struct uptime l = { 0 };

	uptime_since(&l, 100);
	uptime_until(&l, 300);
	l.run_until_ns = 1000;
	uptime_conclude(&l, false, 0);
	cr_assert_eq(l.unsampled_ns, 700);
	cr_assert_eq(uptime_end_ns(&l), 1000);
}

Test(uptime, a_tool_restarted_too_late_leaves_a_gap_up_to_the_end)
{
	struct uptime l = { 0 };

	uptime_since(&l, 100);
	uptime_until(&l, 300);
	uptime_next(&l);
	uptime_conclude(&l, true, 800);
	cr_assert_eq(l.unsampled_ns, 500);
}

/* The end of sampling is not known. */
Test(uptime, a_stream_that_was_cut_has_no_gap_at_its_end)
{
	struct uptime l = { 0 };

	uptime_since(&l, 100);
	uptime_until(&l, 300);
	uptime_conclude(&l, false, 0);
	cr_assert_eq(l.unsampled_ns, 0);
	cr_assert_eq(uptime_end_ns(&l), 300);
}

Test(uptime, a_stream_that_says_nothing_of_it_has_none)
{
	struct uptime l = { 0 };

	uptime_until(&l, 300);
	uptime_next(&l);
	uptime_until(&l, 400);
	uptime_conclude(&l, true, 500);
	cr_assert_eq(l.unsampled_ns, 0);
	cr_assert_eq(uptime_end_ns(&l), 0);
	cr_assert_eq(uptime_sampled_ns(&l), 0);
}

/* The next prof-bpf comes in the second output. */
Test(uptime, each_output_has_the_gaps_of_its_own_time)
{
	struct uptime l = { 0 };

	uptime_since(&l, 100);
	uptime_until(&l, 300);
	uptime_next(&l);
	uptime_since(&l, 350);
	uptime_until(&l, 500);
	cr_assert_eq(l.unsampled_ns, 50);
	uptime_divide(&l);
	cr_assert_eq(l.first_ns, 500);
	cr_assert_eq(uptime_end_ns(&l), 500);
	cr_assert_eq(l.unsampled_ns + uptime_sampled_ns(&l), 0);
	uptime_until(&l, 600);
	cr_assert_eq(uptime_sampled_ns(&l), 100);
	uptime_next(&l);
	uptime_divide(&l); /* during a gap */
	uptime_since(&l, 650);
	uptime_until(&l, 700);
	uptime_conclude(&l, true, 700);
	cr_assert_eq(l.first_ns, 600);
	cr_assert_eq(l.unsampled_ns, 50);
	cr_assert_eq(uptime_sampled_ns(&l), 50);
}
