/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/bytes/numbers.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

Test(numbers, the_smaller_and_the_larger_one)
{
	cr_assert_eq(numbers_smaller(1, 2), 1);
	cr_assert_eq(numbers_smaller(UINT64_MAX, 2), 2);
	cr_assert_eq(numbers_larger(1, UINT64_MAX), UINT64_MAX);
	cr_assert_eq(numbers_larger(3, 3), 3);
	cr_assert_eq(numbers_less(5, 3), 2);
	cr_assert_eq(numbers_less(3, 5), 0);
}

Test(numbers, a_number_that_does_not_fit_is_the_largest_that_does)
{
	cr_assert_eq(numbers_signed(0), 0);
	cr_assert_eq(numbers_signed(INT64_MAX), INT64_MAX);
	cr_assert_eq(numbers_signed((uint64_t)INT64_MAX + 1), INT64_MAX);
	cr_assert_eq(numbers_signed(UINT64_MAX), INT64_MAX);
	cr_assert_eq(numbers_u32(UINT32_MAX - 1), UINT32_MAX - 1);
	cr_assert_eq(numbers_u32((uint64_t)UINT32_MAX + 1), UINT32_MAX);
	cr_assert_eq(numbers_u32(UINT64_MAX), UINT32_MAX);
}

/* With any seed, ids that follow one another, as in a stream, are found after a few looks in a
 * table that is three quarters full. */
Test(numbers, ids_in_sequence_do_not_collide_with_any_seed)
{
	static uint8_t taken[4096];
	const uint32_t cap = sizeof(taken), n = cap / 4 * 3;

	for (uint64_t seed = 1; seed < 400; seed++) {
		const uint64_t random = seed * MIX_FIRST ^ seed << 48;
		uint64_t looks = 0;

		memset(taken, 0, cap);
		for (uint64_t id = 1; id <= n; id++) {
			uint32_t i = (uint32_t)numbers_spread(id, random) & (cap - 1);

			for (looks++; taken[i]; looks++)
				i = (i + 1) & (cap - 1);
			taken[i] = 1;
		}
		cr_assert_lt(looks, 4u * n, "seed %#" PRIx64 ": %" PRIu64 " looks", random, looks);
	}
}

Test(numbers, the_smallest_is_sorted_first)
{
	uint32_t n[] = { 3, UINT32_MAX, 0, 2, 3 };

	qsort(n, 5, sizeof(n[0]), numbers_rising);
	for (int i = 0; i < 4; i++)
		cr_assert_leq(n[i], n[i + 1]);
	cr_assert(n[0] == 0 && n[4] == UINT32_MAX);
}
