/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/objects/copies.h"

#include <criterion/criterion.h>
#include <string.h>
#include "common/names/runtime/v8/v8.h"

static struct copies copies;
static struct runtime_object scratch;
static struct object_names_sources sources;

static void init(void)
{
	cr_assert_eq(copies_init(&copies, 7, 1 << 20), 0);
}

static void done(void)
{
	copies_done(&copies);
	cr_expect_eq(copies.bytes.held, 0);
	object_names_sources_done(&sources);
	runtime_object_done(&scratch);
}

TestSuite(copies, .init = init, .fini = done);

static struct object_id id(uint64_t process, uint64_t address)
{
	return (struct object_id){ .process = process, .address = address, .check = 1 };
}

/* One of eight bytes. */
static void take(uint64_t process, uint64_t address)
{
	uint64_t at = 0x1000, len = 8;

	cr_assert_eq(copies_take(&copies,
				 &(struct msg_object){ .process = process,
						       .address = address,
						       .check = 1,
						       .addresses = { &at, 1 },
						       .lengths = { &len, 1 },
						       .bytes = { (uint8_t *)&at, 8 } },
				 process),
		     0);
}

static bool have(uint64_t process, uint64_t address)
{
	const struct object_id of = id(process, address);

	return copies_have(&copies, &of);
}

Test(copies, each_belongs_to_one_object_of_one_process)
{
	const struct object_id other = { .process = 1, .address = 0x10, .check = 2 };

	cr_expect(!have(1, 0x10));
	take(1, 0x10);
	take(1, 0x10);
	cr_expect(have(1, 0x10));
	cr_expect(!have(2, 0x10));
	cr_expect(!have(1, 0x20));
	cr_expect(!copies_have(&copies, &other));
	cr_expect_eq(copies.by_key.len, 1);
}

Test(copies, the_largest_holder_loses_its_oldest_copy)
{
	take(2, 1);
	for (uint64_t i = 1; i <= COPIES_MAX; i++)
		take(1, i);
	cr_expect(have(2, 1));
	cr_expect(!have(1, 1));
	for (uint64_t i = 2; i <= COPIES_MAX; i++)
		cr_expect(have(1, i));
	take(2, 2);
	cr_expect(have(2, 1));
	cr_expect(have(2, 2));
	cr_expect(!have(1, 2));
	cr_expect_eq(copies.by_key.len, COPIES_MAX);
}

Test(copies, all_together_have_a_limit)
{
	size_t one;

	take(2, 1);
	one = copies.bytes.held;
	copies_limit(&copies, 4 * one + 1);
	for (uint64_t i = 1; i <= 10; i++)
		take(1, i);
	cr_expect(have(2, 1), "it holds less than the other owner");
	cr_expect(!have(1, 7) && have(1, 8) && have(1, 10));
	cr_expect_eq(copies.bytes.held, 4 * one);
	/* Also one that is larger than the limit. */
	copies_limit(&copies, one - 1);
	cr_expect_eq(copies.by_key.len, 0);
	take(1, 11);
	cr_expect(have(1, 11));
	copies_limit(&copies, 0);
	cr_expect_eq(copies.bytes.held, 0);
}

Test(copies, an_empty_one_is_found_once)
{
	const struct object_id of = id(1, 0x10), full = id(1, 0x20);

	take(1, 0x20);
	cr_assert_eq(copies_take(&copies,
				 &(struct msg_object){ .process = 1, .address = 0x10, .check = 1 },
				 0),
		     0);
	cr_expect(!copies_take_empty(&copies, &full));
	cr_expect(copies_take_empty(&copies, &of));
	cr_expect(!copies_take_empty(&copies, &of));
	cr_expect(have(1, 0x20));
}

/* Takes a copy of a function of V8, and names it. more: how much its lengths exceed its bytes. */
static struct copy_names name_of(size_t more)
{
	static const char name[] = "keyed";
	const uint64_t told[V8_TOLD_WORDS] = { [V8_TOLD_IDENTITY] = 80,
					       [V8_TOLD_KIND] = V8_FUNCTION,
					       [V8_TOLD_LINE] = V8_NO_LINE,
					       [V8_TOLD_NAME] = 0x10000,
					       [V8_TOLD_NAME_SIZE] = sizeof(name) - 1 };
	const struct runtime_build v8 = { .known = true, .config.runtime = RUNTIME_V8 };
	const struct object_id of = { .process = 1, .address = v8_key(80), .check = v8_check(80) };
	uint8_t bytes[sizeof(told) + sizeof(name) - 1];
	uint64_t addresses[] = { of.address, 0x10000 },
		 lengths[] = { sizeof(told) + more, sizeof(name) - 1 };
	const struct msg_object m = { .process = of.process,
				      .address = of.address,
				      .check = of.check,
				      .addresses = { addresses, 2 },
				      .lengths = { lengths, 2 },
				      .bytes = { bytes, sizeof(bytes) } };
	struct copy_names ret;

	memcpy(bytes, told, sizeof(told));
	memcpy(bytes + sizeof(told), name, sizeof(name) - 1);
	cr_assert_eq(copies_take(&copies, &m, 0), 0);
	cr_assert_eq(copies_name(&copies, &of, &v8, &scratch, &sources, &ret), 0);
	cr_expect(!copies_have(&copies, &of));
	return ret;
}

Test(copies, names_come_from_one_that_is_whole)
{
	const struct copy_names got = name_of(0);
	struct names names = { 0 };

	cr_assert(got.names);
	cr_expect(got.whole);
	cr_expect_gt(got.bytes, 0);
	object_names_tell(got.names, 0, &names);
	cr_assert_eq(names.count, 1);
	cr_expect(str_eq(names.calls[0].system_name, STR_LIT("keyed")));
	object_names_free(got.names);
}

Test(copies, one_whose_lengths_exceed_its_bytes_gives_no_name)
{
	const struct copy_names got = name_of(sizeof("keyed"));

	cr_expect(!got.names);
}

Test(copies, an_object_without_one_gets_no_name)
{
	const struct object_id of = id(1, 0x10);
	const struct runtime_build v8 = { .known = true, .config.runtime = RUNTIME_V8 };
	struct copy_names got;

	cr_assert_eq(copies_name(&copies, &of, &v8, &scratch, &sources, &got), 0);
	cr_expect(!got.names);
}
