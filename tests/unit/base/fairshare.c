/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/shares/fairshare.h"

#include <criterion/criterion.h>

static uint64_t share_of(uint64_t all, bool taker, const uint64_t *held, unsigned n)
{
	struct fairshare f = { .all = all, .taker = taker };

	do
		for (unsigned i = 0; i < n; i++)
			fairshare_show(&f, held[i]);
	while (fairshare_grows(&f));
	return f.share;
}

#define SHARE_OF(all, taker, ...) \
	share_of(all, taker, (const uint64_t[]){ __VA_ARGS__ }, \
		 sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

Test(fairshare, a_single_owner_gets_all)
{
	cr_assert_eq(share_of(900, true, NULL, 0), 900);
	cr_assert_eq(share_of(900, false, NULL, 0), 900);
}

Test(fairshare, others_share_the_rest_of_a_small_holder)
{
	cr_assert_eq(SHARE_OF(900, true, 890), 450);
	cr_assert_eq(SHARE_OF(900, true, 890, 100), 400);
	cr_assert_eq(SHARE_OF(900, true, 100), 800);
	cr_assert_eq(SHARE_OF(900, true, 1, 299, 590), 300);
	cr_assert_eq(SHARE_OF(900, false, 600, 590), 450);
	cr_assert_eq(SHARE_OF(900, false, 900, 100), 800);
}

Test(fairshare, existing_owners_are_unbounded_while_there_is_enough)
{
	cr_assert_eq(SHARE_OF(900, false, 600, 300), 900);
}

Test(fairshare, owners_without_holdings_do_not_count)
{
	cr_assert_eq(SHARE_OF(900, true, 0, 890, 0), 450);
	cr_assert_eq(SHARE_OF(900, false, 0), 900);
}

Test(fairshare, all_may_be_less_than_what_is_held)
{
	cr_assert_eq(SHARE_OF(10, true, 7, 8, 9), 2);
	cr_assert_eq(SHARE_OF(0, true, 7, 8, 9), 0);
	cr_assert_eq(SHARE_OF(2, false, 7, 8, 9), 0);
	cr_assert_eq(SHARE_OF(UINT64_MAX, true, UINT64_MAX, UINT64_MAX), UINT64_MAX / 3);
}
