/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/text/decimal.h"

#include <criterion/criterion.h>
#include <string.h>

#define UNCHANGED 77u

static void expect(const char *text, uint64_t number)
{
	uint64_t n = UNCHANGED;

	cr_assert(decimal_parse(text, &n), "%s", text);
	cr_assert_eq(n, number, "%s", text);
}

Test(decimal, digits_are_a_number)
{
	expect("0", 0);
	expect("007", 7);
	expect("1234567890", 1234567890);
	expect("18446744073709551615", UINT64_MAX);
}

Test(decimal, a_number_that_is_too_large_is_the_largest)
{
	expect("18446744073709551616", UINT64_MAX);
	expect("18446744073709551620", UINT64_MAX);
	expect("99999999999999999999999", UINT64_MAX);
	/* The product overflows before the sum; later products may not overflow. */
	expect("300000000000000000000000000000000000000000000000000", UINT64_MAX);
}

Test(decimal, anything_else_is_no_number)
{
	static const char *const bad[] = { "",	 " 1", "1 ", "+1", "-1", "0x1",
					   "1.", "a",  "1a", "/",  ":",	 "\xb1" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t n = UNCHANGED;

		cr_assert_not(decimal_parse(bad[i], &n), "%s", bad[i]);
		cr_assert_eq(n, UNCHANGED);
	}
}

Test(decimal, the_rest_of_a_text_stays)
{
	const char *s = "12:34", *none = ":34";
	uint64_t n = UNCHANGED;

	cr_assert_not(decimal_take(&none, &n));
	cr_assert_eq(n, UNCHANGED);
	cr_assert_str_eq(none, ":34");
	cr_assert(decimal_take(&s, &n));
	cr_assert_eq(n, 12);
	cr_assert_str_eq(s, ":34");
}

Test(decimal, at_most_so_many_digits_are_read)
{
	const char text[] = { '1', '2', '3' };
	uint64_t n = UNCHANGED;

	cr_assert_eq(decimal_read(text, 0, &n), 0);
	cr_assert_eq(n, UNCHANGED);
	cr_assert_eq(decimal_read(text, 2, &n), 2);
	cr_assert_eq(n, 12);
	cr_assert_eq(decimal_read(text, sizeof(text), &n), 3);
	cr_assert_eq(n, 123);
	cr_assert_eq(decimal_read("4x", 2, &n), 1);
	cr_assert_eq(n, 4);
}
