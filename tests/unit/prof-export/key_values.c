/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/key_values.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* Expects these pairs, as `key|value;`, and this number of omitted pairs. */
static void expect(struct str list, const char *found, uint32_t left_out)
{
	static char text[2 * KEY_VALUES_TEXT];
	struct key_value p;
	uint32_t skipped = 0;
	size_t n = 0;

	text[0] = '\0';
	while (key_values_next(&list, &p, &skipped))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s|%.*s;", (int)p.key_len,
				      p.key, (int)p.value_len, p.value);
	cr_expect_str_eq(text, found);
	cr_expect_eq(skipped, left_out);
}

Test(key_values, come_one_after_another)
{
	expect(STR_LIT("service.name=shop,service.version=2"),
	       "service.name|shop;service.version|2;", 0);
	expect(STR_LIT("a=b=c"), "a|b=c;", 0);
	expect(STR_LIT(""), "", 0);
}

Test(key_values, blanks_around_keys_and_values_do_not_count)
{
	expect(STR_LIT(" a\t= b c , d = e "), "a|b c;d|e;", 0);
	expect(STR_LIT(" , ,a=b,"), "a|b;", 0);
}

Test(key_values, a_percent_sign_and_two_digits_are_a_byte)
{
	expect(STR_LIT("a%2cb=%3D%20x%c3%A4"), "a,b|= x\xc3\xa4;", 0);
	expect(STR_LIT("a=100%,b=%4,c=%zz,d=%4g"), "a|100%;b|%4;c|%zz;d|%4g;", 0);
}

Test(key_values, without_a_key_or_a_value_there_is_no_pair)
{
	expect(STR_LIT("a,=b,c=,d= ,e=f"), "e|f;", 4);
}

Test(key_values, a_list_that_is_too_long_for_a_stream_is_cut)
{
	static char list[3 * KEY_VALUES_TEXT];
	struct key_value p;
	uint32_t skipped = 0;
	struct str rest = { .data = list, .len = sizeof(list) };

	memset(list, 'x', sizeof(list));
	list[KEY_VALUES_TEXT + 10] = '=';
	cr_assert(key_values_next(&rest, &p, &skipped));
	cr_expect(p.key_len == KEY_VALUES_TEXT && p.value_len == KEY_VALUES_TEXT && !rest.len);
}
