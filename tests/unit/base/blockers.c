/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/tables/blockers.h"

#include <criterion/criterion.h>

#define MINUTE 60000000000ull
#define START (1000 * MINUTE)

static struct blockers b;

Test(blockers, files_of_a_user_rest_for_a_minute)
{
	cr_expect_not(blockers_has(&b, 1000, START));
	blockers_note(&b, 1000, START);
	cr_expect(blockers_has(&b, 1000, START + MINUTE - 1));
	cr_expect_not(blockers_has(&b, 1000, START + MINUTE));
	cr_expect_not(blockers_has(&b, 1001, START));
}

Test(blockers, each_further_time_makes_the_rest_longer)
{
	uint64_t now = START;

	for (unsigned minutes = 1; minutes <= 16; minutes *= 2) {
		blockers_note(&b, 1000, now);
		now += minutes * MINUTE;
		cr_expect(blockers_has(&b, 1000, now - 1), "%u", minutes);
		cr_expect_not(blockers_has(&b, 1000, now), "%u", minutes);
	}
	blockers_note(&b, 1000, now);
	cr_expect_not(blockers_has(&b, 1000, now + 16 * MINUTE));
	/* After a long time it is the first one again. */
	now += 100 * MINUTE;
	blockers_note(&b, 1000, now);
	cr_expect_not(blockers_has(&b, 1000, now + MINUTE));
}

Test(blockers, a_block_of_subordinate_ids_is_one_user)
{
	blockers_note(&b, 0x20007, START);
	cr_expect(blockers_has(&b, 0x2ffff, START));
	cr_expect_not(blockers_has(&b, 0x30000, START));
	cr_expect_not(blockers_has(&b, 7, START));
}

Test(blockers, of_too_many_users_the_one_whose_rest_ends_first_is_forgotten)
{
	for (uint32_t i = 0; i <= BLOCKERS_MAX; i++)
		blockers_note(&b, 1000 + i, START + i);
	cr_expect_not(blockers_has(&b, 1000, START + BLOCKERS_MAX));
	for (uint32_t i = 1; i <= BLOCKERS_MAX; i++)
		cr_expect(blockers_has(&b, 1000 + i, START + BLOCKERS_MAX), "%u", i);
}
