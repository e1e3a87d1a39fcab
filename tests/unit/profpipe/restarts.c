/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "tools/profpipe/run/children/restarts.h"

#define SECOND 1000000000ull

Test(restarts, the_first_comes_at_once)
{
	struct restarts r = { 0 };

	cr_assert(restarts_plan(&r, 5 * SECOND, 0, RESTARTS_STREAK_MAX));
	cr_assert_eq(r.due_ns, 5 * SECOND);
	cr_assert_eq(r.count, 1);
}

Test(restarts, short_lives_are_waited_for_longer_and_longer_and_end)
{
	struct restarts r = { 0 };
	uint64_t before = 0, wait;

	for (unsigned i = 0; i < RESTARTS_STREAK_MAX; i++) {
		cr_assert(restarts_plan(&r, SECOND, SECOND / 10, RESTARTS_STREAK_MAX));
		wait = r.due_ns - SECOND;
		cr_assert(i < 2 || wait == 5 * SECOND || wait == (i == 1 ? 1 : 2) * before);
		cr_assert_geq(wait, before);
		before = wait;
	}
	cr_assert_eq(before, 5 * SECOND);
	cr_assert_not(restarts_plan(&r, SECOND, SECOND / 10, RESTARTS_STREAK_MAX));
	cr_assert_eq(r.due_ns, 0);
	cr_assert_eq(r.count, RESTARTS_STREAK_MAX);
}

Test(restarts, a_tool_that_lives_long_is_always_restarted)
{
	struct restarts r = { 0 };

	for (unsigned i = 0; i < 1000; i++) {
		cr_assert(restarts_plan(&r, SECOND, 3 * SECOND, RESTARTS_STREAK_MAX));
		cr_assert_eq(r.due_ns, SECOND);
	}
}

Test(restarts, a_long_life_makes_good)
{
	struct restarts r = { .streak = RESTARTS_STREAK_MAX };

	cr_assert(restarts_plan(&r, SECOND, 61 * SECOND, RESTARTS_STREAK_MAX));
	cr_assert_eq(r.due_ns, SECOND);
	cr_assert_eq(r.streak, 0);
}
