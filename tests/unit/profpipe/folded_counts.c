/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "common/status/check.h"
#include "tools/profpipe/doctor/folded_counts.h"

static struct folded_counts count(const char *text)
{
	struct folded_counts t = { 0 };

	folded_counts_add(&t, text, strlen(text));
	return t;
}

Test(folded_counts, stacks_are_told_apart)
{
	const struct folded_counts t = count(
		"p;main;spin 5\n"
		"p;main;getrandom;entry_[k];get_random_[k] 7\n"
		"p;[truncated: no-rows];[libc.so.6+0x10] 2\n"
		"p;[libc.so.6+0x10];[kernel+0xffffffff81000000]_[k] 3\n"
		"p;[libc.so.6+0x10];[kernel+0xffffffff81000000] 4\n");

	cr_assert_eq(t.samples, 21);
	cr_assert_eq(t.complete, 19);
	cr_assert_eq(t.kernel, 14);
	cr_assert_eq(t.kernel_named, 7);
	cr_assert_eq(t.user_named, 12);
}

Test(folded_counts, a_name_like_a_mark_is_not_counted_as_one)
{
	const struct folded_counts t =
		count("p;\\[truncated: no-rows];\\[kernel+0x1];open_\\[k] 5\n");

	cr_assert_eq(t.complete, 5);
	cr_assert_eq(t.kernel, 0);
	cr_assert_eq(t.user_named, 5);
}

Test(folded_counts, name_of_the_process_is_no_frame)
{
	const struct folded_counts t = count("[truncated: x]_[k];f 1\nlonely 2\n");

	cr_assert_eq(t.samples, 3);
	cr_assert_eq(t.complete, 3);
	cr_assert_eq(t.kernel, 0);
	cr_assert_eq(t.user_named, 1);
}

Test(folded_counts, malformed_lines_are_skipped)
{
	const struct folded_counts t = count(
		"\n\n ;\n;\nx\nx;y\nx;y \nx;y 12z\nx;y -1\nx;y 99999999999999999999\na b;c d 4");

	cr_assert_eq(t.samples, 4);
	cr_assert_eq(t.user_named, 4);
}

Test(check, verdict_only_gets_worse)
{
	struct check c;

	check_init(&c, "thing");
	check_fail(&c, "none", "get one");
	check_degrade(&c, "little", "wait");
	cr_assert_eq(c.verdict, CHECK_FATAL);
	cr_assert_str_eq(c.lost, "none");
	cr_assert_str_eq(c.remedy, "get one");
	cr_assert_str_eq(check_word(c.verdict), "fatal");
}

Test(check, malformed_words_are_refused)
{
	struct check c, bad;

	check_init(&c, "thing");
	check_found(&c, "%0*d", CHECK_TEXT * 2, 7);
	cr_assert(check_valid(&c), "a long text is cut, and ends");
	bad = c;
	bad.magic++;
	cr_assert_not(check_valid(&bad));
	bad = c;
	bad.verdict = CHECK_VERDICTS;
	cr_assert_not(check_valid(&bad));
	bad = c;
	memset(bad.lost, 'x', sizeof(bad.lost));
	cr_assert_not(check_valid(&bad));
	bad = c;
	memset(bad.name, 'x', sizeof(bad.name));
	cr_assert_not(check_valid(&bad));
}
