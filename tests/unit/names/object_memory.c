/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "common/names/runtime/object_memory.h"

#define STRING 0x7f0000001000ull

static int get(struct object_memory *m, uint64_t address, uint32_t n, const uint8_t **ret)
{
	return object_memory_get(m, address, n, n + 60, ret);
}

static void put(struct object_memory *m, unsigned piece, const char *text)
{
	cr_assert_eq(object_memory_put(
			     m, piece,
			     (struct span){ .data = (const uint8_t *)text, .len = strlen(text) }),
		     0);
}

/* prof-bpf gives a string only up to its own length. */
Test(object_memory, a_string_behind_another_one_that_was_cut_off_is_requested_too)
{
	struct object_memory m = { 0 };
	const uint8_t *at;
	unsigned next = 0;

	cr_expect_eq(get(&m, STRING, 4, &at), OBJECT_MEMORY_WANTED);
	put(&m, 0, "abcd");
	cr_assert_eq(get(&m, STRING, 4, &at), 0);
	cr_expect_eq(get(&m, STRING + 8, 4, &at), OBJECT_MEMORY_WANTED);
	cr_assert(object_memory_next(&m, &next));
	cr_expect_eq(m.pieces[next].address, STRING + 8);
	put(&m, next, "efgh");
	cr_assert_eq(get(&m, STRING + 8, 4, &at), 0);
	cr_expect_eq(memcmp(at, "efgh", 4), 0);
	cr_assert_eq(get(&m, STRING, 4, &at), 0);
	cr_expect_eq(memcmp(at, "abcd", 4), 0);
	object_memory_done(&m);
}

Test(object_memory, memory_that_was_not_given_is_requested_once)
{
	struct object_memory m = { 0 };
	const uint8_t *at;

	cr_expect_eq(get(&m, STRING, 8, &at), OBJECT_MEMORY_WANTED);
	put(&m, 0, "abcd");
	cr_expect_eq(get(&m, STRING, 8, &at), OBJECT_MEMORY_NONE);
	cr_expect_eq(get(&m, STRING, 1000, &at), OBJECT_MEMORY_NONE);
	cr_expect_eq(get(&m, STRING + 8, 4, &at), OBJECT_MEMORY_WANTED);
	put(&m, 1, "");
	cr_expect_eq(get(&m, STRING + 8, 4, &at), OBJECT_MEMORY_NONE);
	cr_expect_eq(m.count, 2);
	object_memory_done(&m);
}
