/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/endpoint/headers.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct span span_of(const char *text)
{
	return (struct span){ .data = (const uint8_t *)text, .len = strlen(text) };
}

Test(headers, lines_are_headers_with_names_in_lower_case)
{
	struct headers h = { .n = 0 };
	unsigned line;

	cr_assert_eq(headers_parse_file(&h,
					span_of("# gate\r\nAuthorization:  Bearer x y \r\n\n"
						"  X-Scope-OrgID:team\n"),
					&line),
		     0);
	cr_assert_eq(h.n, 2);
	cr_assert_str_eq(headers_get(&h, 0), "authorization: Bearer x y");
	cr_assert_str_eq(headers_get(&h, 1), "x-scope-orgid: team");
	headers_done(&h);
}

Test(headers, a_value_of_asterisks_is_hidden_as_well)
{
	struct headers h = { .n = 0 };
	char text[] = "*****";
	unsigned line;

	cr_assert_eq(headers_parse_file(&h, span_of("a: ****"), &line), 0);
	headers_hide(&h, text);
	cr_assert_str_eq(text, "*****");
	headers_done(&h);
}

Test(headers, a_list_is_decoded)
{
	struct headers h = { .n = 0 };
	unsigned line;

	cr_assert_eq(headers_parse_list(&h, span_of("a=b%20c, d = e=f ,,g=%zz%4"), &line), 0);
	cr_assert_eq(h.n, 3);
	cr_assert_str_eq(headers_get(&h, 0), "a: b c");
	cr_assert_str_eq(headers_get(&h, 1), "d: e=f");
	cr_assert_str_eq(headers_get(&h, 2), "g: %zz%4");
	headers_done(&h);
}

Test(headers, bad_lines_are_refused_by_number_and_leave_the_others)
{
	static const struct {
		const char *text;
		int verdict;
		unsigned line;
	} cases[] = {
		{ "a: b\nno colon\n", HEADERS_NO_COLON, 2 },
		{ ": b", HEADERS_NAME, 1 },
		{ "a b: c", HEADERS_NAME, 1 },
		{ "\n\na\x80: c", HEADERS_NAME, 3 },
		{ "a: b\x7f", HEADERS_VALUE, 1 },
		{ "a: b\rc: d", HEADERS_VALUE, 1 },
		{ "HOST: b", HEADERS_RESERVED, 1 },
		{ "te: b", HEADERS_RESERVED, 1 },
		{ "Grpc-Status: b", HEADERS_RESERVED, 1 },
	};
	struct headers h = { .n = 0 };
	unsigned line = 0;

	cr_assert_eq(headers_parse_file(&h, span_of("x: y"), &line), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(headers_parse_file(&h, span_of(cases[i].text), &line),
			     cases[i].verdict, "%zu", i);
		cr_assert_eq(line, cases[i].line);
		cr_assert_eq(h.n, 1);
		cr_assert_str_eq(headers_get(&h, 0), "x: y");
	}
	/* A value cannot smuggle in a second header. */
	cr_assert_eq(headers_parse_list(&h, span_of("a=b%0d%0aevil: c"), &line), HEADERS_VALUE);
	cr_assert_eq(h.n, 1);
	headers_done(&h);
}

Test(headers, there_are_limits)
{
	static char text[HEADERS_FILE_MAX + 8];
	struct headers h = { .n = 0 };
	unsigned line;
	size_t n = 0;

	for (int i = 0; i <= HEADERS_MOST; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "a: b\n");
	cr_assert_eq(headers_parse_file(&h, span_of(text), &line), HEADERS_MANY);
	cr_assert_eq(line, HEADERS_MOST + 1);
	memset(text, '#', sizeof(text) - 1);
	cr_assert_eq(headers_parse_file(&h, span_of(text), &line), HEADERS_MANY);
	headers_done(&h);
}

Test(headers, values_are_hidden_in_what_a_server_says)
{
	struct headers h = { .n = 0 };
	char text[] = "bad Bearer tok3n, or tok3n; key abc stays, abcd goes";
	unsigned line;

	cr_assert_eq(headers_parse_file(&h, span_of("a: Bearer tok3n\nb: abc\nc: abcd"), &line), 0);
	headers_hide(&h, text);
	cr_assert_str_eq(text, "bad ************, or *****; key abc stays, **** goes");
	headers_done(&h);
}

Test(headers, values_are_hidden_in_other_forms)
{
	struct headers h = { .n = 0 };
	char text[] = "BAD TOK3N%2b, or tok3n+";
	unsigned line;

	cr_assert_eq(headers_parse_file(&h, span_of("a: Bearer tok3n%2B"), &line), 0);
	headers_hide(&h, text);
	cr_assert_str_eq(text, "BAD ********, or ******");
	headers_done(&h);
}

Test(headers, a_value_that_was_cut_is_hidden_as_well)
{
	struct headers h = { .n = 0 };
	char cut[] = "no access with Bearer tok3", word[] = "wrong: tok3", other[] = "wrong: tok";
	unsigned line;

	cr_assert_eq(headers_parse_file(&h, span_of("a: Bearer tok3n"), &line), 0);
	headers_hide(&h, cut);
	cr_assert_str_eq(cut, "no access with ***********");
	headers_hide(&h, word);
	cr_assert_str_eq(word, "wrong: ****");
	headers_hide(&h, other);
	cr_assert_str_eq(other, "wrong: tok");
	headers_done(&h);
}
