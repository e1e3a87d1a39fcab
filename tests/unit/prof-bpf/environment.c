/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/workers/environment.h"

#include <criterion/criterion.h>

static const char *const names[] = { "NAME", "NAM", "OTHER" };
static char found[3][ENVIRONMENT_VALUE_MAX + 1];
static unsigned calls;

static void take(void *ctx, unsigned which, struct str value)
{
	cr_assert(which < 3 && value.len && value.len <= ENVIRONMENT_VALUE_MAX);
	memcpy(found[which], value.data, value.len);
	calls++;
}

static void feed(const char *bytes, size_t len)
{
	struct environment_parser e = { .names = names, .count = 3, .take = take };

	environment_feed(&e, (struct span){ .data = (const uint8_t *)bytes, .len = len });
}

Test(environment, variables_are_found_by_their_whole_names_and_the_first_one_counts)
{
	static const char bytes[] = "NAMES=1\0XNAME=2\0NAME=a=b\0NAME=3\0NAM=4\0OTHER=\0NAME";

	feed(bytes, sizeof(bytes));
	cr_expect_str_eq(found[0], "a=b");
	cr_expect_str_eq(found[1], "4");
	cr_expect_eq(calls, 2, "one that is empty is none");
}

Test(environment, a_variable_without_its_end_is_not_taken)
{
	feed("NAM=1\0NAME=secr", 15);
	cr_expect_eq(calls, 1);
	cr_expect_str_eq(found[1], "1");
}

Test(environment, a_long_value_is_cut_between_characters)
{
	static char bytes[4096] = "NAME=x";

	for (size_t i = 6; i + 2 < 3000; i += 2)
		memcpy(bytes + i, "\xc3\xa4", 2);
	feed(bytes, sizeof(bytes));
	cr_expect_eq(strlen(found[0]), ENVIRONMENT_VALUE_MAX - 1);
	cr_expect_eq((uint8_t)found[0][ENVIRONMENT_VALUE_MAX - 2], 0xa4);
}

Test(environment, arguments_have_a_nul_between_them)
{
	char bytes[] = "/bin/sh\0-c\0\0a b\0\0";
	const struct str line = environment_command_line(bytes, sizeof(bytes));

	cr_expect(str_eq(line, STR_LIT("/bin/sh\0-c\0\0a b")));
	cr_expect_eq(environment_command_line(bytes, 0).len, 0);
	memset(bytes, 0, sizeof(bytes));
	cr_expect_eq(environment_command_line(bytes, sizeof(bytes)).len, 0);
}

Test(environment, values_are_read_back_and_malformed_ones_refused)
{
	static uint8_t bytes[ENVIRONMENT_BYTES];
	size_t used = environment_put(bytes, 0, 2, STR_LIT("two"));
	unsigned which;
	struct str value;

	used = environment_put(bytes, used, ENVIRONMENT_COMMAND_LINE, STR_LIT("/bin/x"));
	struct span rest = { .data = bytes, .len = used };

	cr_assert(environment_next(&rest, &which, &value));
	cr_expect(which == 2 && str_eq(value, STR_LIT("two")));
	cr_assert(environment_next(&rest, &which, &value));
	cr_expect(which == ENVIRONMENT_COMMAND_LINE && str_eq(value, STR_LIT("/bin/x")));
	cr_expect(!environment_next(&rest, &which, &value));
	rest = (struct span){ .data = bytes, .len = 10 };
	cr_expect(!environment_next(&rest, &which, &value), "it is cut");
	bytes[0] = ENVIRONMENT_VALUES;
	rest = (struct span){ .data = bytes, .len = used };
	cr_expect(!environment_next(&rest, &which, &value), "no such value");
}
