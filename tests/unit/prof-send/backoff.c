/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/answer/backoff.h"

#include <criterion/criterion.h>

Test(backoff, it_doubles_up_to_a_maximum_between_half_and_whole)
{
	uint64_t step = BACKOFF_FIRST_MS;

	for (unsigned failures = 1; failures < 70; failures++) {
		cr_assert_eq(backoff_ms(failures, 0, 0), step / 2);
		cr_assert_geq(backoff_ms(failures, 0, UINT32_MAX), step - 1);
		cr_assert_leq(backoff_ms(failures, 0, UINT32_MAX), step);
		step = 2 * step < BACKOFF_MOST_MS ? 2 * step : BACKOFF_MOST_MS;
	}
	cr_assert_eq(backoff_ms(UINT32_MAX, 0, 0), BACKOFF_MOST_MS / 2);
}

Test(backoff, the_servers_wait_is_the_minimum)
{
	cr_assert_eq(backoff_ms(1, 10000, 0), 10000);
	cr_assert_leq(backoff_ms(1, 10000, UINT32_MAX), 11250);
	cr_assert_eq(backoff_ms(20, 1, 0), BACKOFF_MOST_MS / 2, "its own wait may be longer");
}
