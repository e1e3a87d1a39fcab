/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/text/hex.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(hex, digits_are_those_of_the_table_alone)
{
	static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

	for (int i = -128; i < 128; i++) {
		const char c = (char)i;
		const char *l = c ? strchr(lower, c) : NULL, *u = c ? strchr(upper, c) : NULL;

		cr_assert_eq(hex_lower(c), l ? l - lower : -1, "%d", i);
		cr_assert_eq(hex_digit(c), l ? l - lower : u ? u - upper : -1, "%d", i);
	}
}

Test(hex, two_digits_are_a_byte)
{
	for (int i = 0; i < 256; i++) {
		char text[3];

		snprintf(text, sizeof(text), "%02x", i);
		cr_assert_eq(hex_byte(text), i);
		snprintf(text, sizeof(text), "%02X", i);
		cr_assert_eq(hex_byte(text), i);
	}
}

Test(hex, malformed_pair_is_refused)
{
	static const char *const bad[] = { "",	 "0",  "0x", "g0", "0g", " 1", "1 ",
					   "-1", "+1", "/0", "0:", "@0", "0`" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char two[3] = { 0 };

		memcpy(two, bad[i], strlen(bad[i]));
		cr_assert_eq(hex_byte(two), -1, "%s", bad[i]);
	}
}
