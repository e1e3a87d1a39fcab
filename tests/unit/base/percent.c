/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/text/percent.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The text has no byte behind it, so that the sanitizer sees a read beyond it. */
static void expect(const char *text, const char *decoded, size_t n)
{
	const size_t len = strlen(text);
	char *exact = malloc(len + !len), got[64];
	size_t at = 0, have = 0;

	cr_assert_not_null(exact);
	memcpy(exact, text, len);
	while (at < len)
		got[have++] = percent_next(exact, len, &at);
	cr_assert_eq(at, len);
	cr_assert_eq(have, n, "%s", text);
	cr_assert_arr_eq(got, decoded, n);
	free(exact);
}

#define EXPECT(text, decoded) expect(text, decoded, sizeof(decoded) - 1)

Test(percent, two_digits_of_either_case_are_a_byte)
{
	EXPECT("", "");
	EXPECT("plain+text", "plain+text");
	EXPECT("a%20b", "a b");
	EXPECT("%C3%a9", "\xc3\xa9");
	EXPECT("%00%ff", "\0\xff");
}

Test(percent, a_decoded_byte_is_not_decoded_again)
{
	EXPECT("%2541", "%41");
	EXPECT("%25%34%31", "%41");
}

Test(percent, other_percents_stand_for_themselves)
{
	EXPECT("%", "%");
	EXPECT("100%", "100%");
	EXPECT("%4", "%4");
	EXPECT("%4g", "%4g");
	EXPECT("%g4", "%g4");
	EXPECT("%%41", "%A");
	EXPECT("% 41%-1%0x", "% 41%-1%0x");
}
