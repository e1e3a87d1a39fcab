/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/definitions/attributes.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

static struct pool pool;
static struct attributes all;

static void set_up(void)
{
	pool = (struct pool){ .max = 1u << 20 };
	all = (struct attributes){ 0 };
}

TestSuite(attributes, .init = set_up);

static void set(const char *key, const char *value)
{
	cr_assert_eq(attributes_set(&all, &pool, str_from(key), str_from(value)), 0);
}

static void expect(const char *wanted)
{
	static char text[4096];
	struct span rest = attributes_all(&all);
	struct str key, value;
	size_t n = 0;

	text[0] = '\0';
	while (attributes_next(&rest, &key, &value))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s=%.*s;", (int)key.len,
				      key.data, (int)value.len, value.data);
	cr_expect_str_eq(text, wanted);
	cr_expect_eq(rest.len, 0);
}

Test(attributes, the_last_value_of_a_key_counts)
{
	expect("");
	set("a", "1");
	set("b", "2");
	set("c", "3");
	expect("a=1;b=2;c=3;");
	set("b", "longer");
	expect("a=1;b=longer;c=3;");
	set("a", "");
	expect("b=longer;c=3;");
	set("c", "x");
	set("a", "again");
	expect("b=longer;c=x;a=again;");
	set("none", "");
	expect("b=longer;c=x;a=again;");
}

Test(attributes, attributes_are_limited_and_their_memory_is_freed)
{
	char key[32];
	int r = 0;

	for (int i = 0; !r && i < 10000; i++) {
		snprintf(key, sizeof(key), "key %d", i);
		r = attributes_set(&all, &pool, str_from(key), str_from("value"));
	}
	cr_expect_eq(r, -ENOBUFS);
	cr_expect_leq(all.bytes.len, ATTRIBUTES_MAX);
	attributes_done(&all, &pool);
	cr_expect_eq(pool.used, 0);
	pool.max = 8;
	cr_expect_eq(attributes_set(&all, &pool, STR_LIT("key"), STR_LIT("a value")), -ENOBUFS);
	expect("");
}
