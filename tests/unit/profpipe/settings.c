/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/settings/settings.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "tools/profpipe/settings/spelling.h"

static struct settings s;
static char refused[4096];

static void refuse(void *ctx, unsigned line, const char *key, const char *why)
{
	const size_t n = strlen(refused);

	(void)ctx;
	snprintf(refused + n, sizeof(refused) - n, "%u: %s: %s\n", line, key ? key : "-", why);
}

static int parse(const char *text)
{
	refused[0] = '\0';
	s.count = 0;
	return settings_parse(&s, str_from(text), refuse, NULL);
}

static void expect(size_t i, const char *key, const char *value, unsigned line)
{
	cr_assert_gt(s.count, i);
	cr_assert_str_eq(s.list[i].key, key);
	cr_assert_str_eq(s.list[i].value, value);
	cr_assert_eq(s.list[i].line, line);
}

Test(settings, keys_have_values_and_lines)
{
	cr_assert_eq(parse("# profpipe\nfrequency = 20\r\n\n  output=/a b  \n; end\npid: 7"), 0);
	cr_assert_eq(s.count, 3);
	expect(0, "frequency", "20", 2);
	expect(1, "output", "/a b", 4);
	expect(2, "pid", "7", 6);
	settings_done(&s);
	cr_assert_eq(s.count, 0);
}

Test(settings, a_value_may_hold_what_separates_keys_and_comments)
{
	cr_assert_eq(parse("otlp = https://a:1/x?y=z;w#v\n"), 0);
	expect(0, "otlp", "https://a:1/x?y=z;w#v", 1);
	settings_done(&s);
}

Test(settings, the_mark_of_an_editor_is_skipped)
{
	cr_assert_eq(parse("\xef\xbb\xbf"
			   "pid = 1"),
		     0);
	expect(0, "pid", "1", 1);
	settings_done(&s);
}

Test(settings, all_wrong_lines_are_refused_and_the_others_kept)
{
	cr_assert_eq(parse("pid\n[run]\n= 5\na = \nb = c\nd = e ; f\n"), SETTINGS_BAD);
	cr_assert_str_eq(refused,
			 "1: -: no setting; write `key = value`, or # before a comment\n"
			 "2: -: begins a section; remove the line, since all keys stand alone\n"
			 "3: -: no key before the `=`; write `key = value`\n"
			 "4: a: no value; write one, or remove the line\n"
			 "6: -: a comment behind a value; give it a line of its own\n");
	cr_assert_eq(s.count, 1);
	expect(0, "b", "c", 5);
	settings_done(&s);
}

Test(settings, a_long_value_is_whole_or_refused)
{
	char text[300] = "k = ";

	memset(text + 4, 'x', 193);
	cr_assert_eq(parse(text), 0);
	cr_assert_eq(strlen(s.list[0].value), 193);
	settings_done(&s);
	text[4 + 193] = 'x';
	cr_assert_eq(parse(text), SETTINGS_BAD);
	cr_assert_str_eq(refused, "1: -: the line is too long; write 197 bytes at most\n");
	cr_assert_eq(s.count, 0);
}

Test(settings, too_many_are_refused)
{
	char text[4 * (SETTINGS_MAX + 1) + 1] = "";

	for (size_t i = 0; i <= SETTINGS_MAX; i++)
		memcpy(text + 4 * i, "a=b\n", 5);
	cr_assert_eq(parse(text), SETTINGS_BAD);
	cr_assert_str_eq(refused, "257: a: too many settings; give 256 at most\n");
	cr_assert_eq(s.count, SETTINGS_MAX);
	settings_done(&s);
}

Test(spelling, letters_are_counted)
{
	cr_assert_eq(spelling_distance("frequency", "frequency"), 0);
	cr_assert_eq(spelling_distance("frequncy", "frequency"), 1);
	cr_assert_eq(spelling_distance("lines", "liens"), 2);
	cr_assert_eq(spelling_distance("", "abc"), 3);
}

Test(spelling, a_word_with_few_letters_in_common_is_not_meant)
{
	cr_assert(spelling_is_likely("frequncy", 1));
	cr_assert(spelling_is_likely("pids", 1));
	cr_assert_not(spelling_is_likely("pids", 3));
	cr_assert_not(spelling_is_likely("banana", 4));
}
