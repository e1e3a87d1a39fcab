/* SPDX-License-Identifier: Apache-2.0 */
/* Options of reporting: one tool writes them, another one parses them. */
#include <criterion/criterion.h>
#include "common/base/command/exits.h"
#include "common/base/command/reporting.h"

static int parse(int argc, char **argv, struct reporting *r)
{
	static const struct option longs[] = { REPORTING_OPTIONS, { 0 } };
	struct cmdline c = { .tool = "test",
			     .usage = "",
			     .shorts = ":",
			     .longs = longs,
			     .argc = argc,
			     .argv = argv };
	int val;

	optind = 0;
	while ((val = cmdline_next(&c)) != CMDLINE_END) {
		const int e = val == CMDLINE_EXIT ? c.status : reporting_option(r, &c, val);

		if (e != EXITS_GO_ON)
			return e;
	}
	return EXITS_GO_ON;
}

static int parse_one(const char *option, const char *value)
{
	char *argv[] = { (char[]){ "test" }, (char *)option, (char *)value, NULL };
	struct reporting r = REPORTING_DEFAULTS;

	return parse(3, argv, &r);
}

Test(reporting, words_say_the_same_again)
{
	const struct reporting said = { .window_s = 0.1,
					.jitter_percent = 7,
					.names = REPORTING_INTERPRETED,
					.receiver = REPORTING_DEVFILER };
	struct reporting heard = REPORTING_DEFAULTS;
	struct words w = WORDS_NONE;

	words_add(&w, "test");
	reporting_words(&said, &w);
	cr_assert_eq(words_end(&w), 0);
	cr_assert_eq(parse((int)w.n, w.argv, &heard), EXITS_GO_ON);
	cr_expect_eq(heard.window_s, said.window_s);
	cr_expect_eq(heard.jitter_percent, said.jitter_percent);
	cr_expect_eq(heard.names, said.names);
	cr_expect_eq(heard.receiver, said.receiver);
	words_done(&w);
}

Test(reporting, values_out_of_range_are_refused)
{
	cr_expect_eq(parse_one("--window", "0"), EXITS_USAGE);
	cr_expect_eq(parse_one("--window", "3601"), EXITS_USAGE);
	cr_expect_eq(parse_one("--window", "nan"), EXITS_USAGE);
	cr_expect_eq(parse_one("--window", "3600"), EXITS_GO_ON);
	cr_expect_eq(parse_one("--window-jitter", "91"), EXITS_USAGE);
	cr_expect_eq(parse_one("--window-jitter", "0"), EXITS_GO_ON);
	cr_expect_eq(parse_one("--names", "some"), EXITS_USAGE);
	cr_expect_eq(parse_one("--receiver", "parca"), EXITS_USAGE);
}
