/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/bytes/numbers.h"

#include <criterion/criterion.h>
#include <stdlib.h>

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

Test(numbers, the_smallest_is_sorted_first)
{
	uint32_t n[] = { 3, UINT32_MAX, 0, 2, 3 };

	qsort(n, 5, sizeof(n[0]), numbers_rising);
	for (int i = 0; i < 4; i++)
		cr_assert_leq(n[i], n[i + 1]);
	cr_assert(n[0] == 0 && n[4] == UINT32_MAX);
}
