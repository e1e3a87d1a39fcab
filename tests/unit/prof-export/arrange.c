/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/arrange.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include "tools/prof-export/otlp/otlp.pb-c.h"

static struct pool pool;
static struct dictionary from, to;

static void set_up(void)
{
	pool = (struct pool){ .max = 1u << 20 };
	cr_assert_eq(dictionary_begin(&from, &pool, 1u << 20), 0);
	cr_assert_eq(dictionary_begin(&to, &pool, 1u << 20), 0);
}

static void clean_up(void)
{
	dictionary_done(&from);
	dictionary_done(&to);
	cr_expect_eq(pool.used, 0, "all is given back");
}

TestSuite(arrange, .init = set_up, .fini = clean_up);

static int32_t mapping(const char *name)
{
	Otlp__Mapping m = OTLP__MAPPING__INIT;
	uint32_t string, i;

	cr_assert_eq(dictionary_string(&from, str_from(name), &string), 0);
	m.filename_strindex = (int32_t)string;
	cr_assert_eq(dictionary_message(&from, DICTIONARY_MAPPINGS, &m.base, &i), 0);
	return (int32_t)i;
}

static int32_t location(int32_t in, uint64_t address)
{
	Otlp__Location l = OTLP__LOCATION__INIT;
	uint32_t i;

	l.mapping_index = in;
	l.address = address;
	cr_assert_eq(dictionary_message(&from, DICTIONARY_LOCATIONS, &l.base, &i), 0);
	return (int32_t)i;
}

static uint32_t stack(size_t n, int32_t *locations)
{
	Otlp__Stack s = OTLP__STACK__INIT;
	uint32_t i;

	s.n_location_indices = n;
	s.location_indices = locations;
	cr_assert_eq(dictionary_message(&from, DICTIONARY_STACKS, &s.base, &i), 0);
	return i;
}
#define STACK(...) \
	stack(sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t), (int32_t[]){ __VA_ARGS__ })

static void expect_location(uint32_t i, const char *file, uint64_t address)
{
	const struct span s = dictionary_get(&to, DICTIONARY_LOCATIONS, i);
	Otlp__Location *l = otlp__location__unpack(NULL, s.len, s.data);

	cr_assert_not_null(l);
	const struct span packed = dictionary_get(&to, DICTIONARY_MAPPINGS,
						  (uint32_t)l->mapping_index);
	Otlp__Mapping *m = otlp__mapping__unpack(NULL, packed.len, packed.data);

	cr_assert_not_null(m);
	const struct span name = dictionary_get(&to, DICTIONARY_STRINGS,
						(uint32_t)m->filename_strindex);

	cr_expect(str_eq((struct str){ .data = (const char *)name.data, .len = (uint32_t)name.len },
			 str_from(file)));
	cr_expect_eq(l->address, address, "%u: %#" PRIx64, i, l->address);
	otlp__mapping__free_unpacked(m, NULL);
	otlp__location__free_unpacked(l, NULL);
}

static void expect_stack(uint32_t i, size_t n, const int32_t *locations)
{
	const struct span s = dictionary_get(&to, DICTIONARY_STACKS, i);
	Otlp__Stack *k = otlp__stack__unpack(NULL, s.len, s.data);

	cr_assert_not_null(k);
	cr_expect(k->n_location_indices == n &&
			  !memcmp(k->location_indices, locations, n * sizeof(*locations)),
		  "stack %u", i);
	otlp__stack__free_unpacked(k, NULL);
}
#define EXPECT_STACK(i, ...) \
	expect_stack(i, sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t), \
		     (int32_t[]){ __VA_ARGS__ })

Test(arrange, neighbours_adjoin_and_unused_functions_are_left_out)
{
	const int32_t a = mapping("/a"), b = mapping("/b"), a9 = location(a, 0x90000),
		      b5 = location(b, 0x5), a1 = location(a, 0x1), none = location(a, 0x7),
		      no_file = location(0, 0x300), b2 = location(b, 0x2);
	uint32_t used_stacks[] = { STACK(a9, b5), STACK(a1, b2), STACK(none, b5),
				   STACK(no_file, b5), STACK(b5) };
	uint8_t used[6] = { 0 };
	struct dictionary_memo memo = { 0 };
	uint32_t i;

	for (size_t k = 0; k < 5; k++)
		used[used_stacks[k]] = k != 2;
	cr_assert_eq(arrange_stacks(&to, &from, used, &memo), 0);
	/* By file and address: no_file, a1, a9, b2, b5. */
	cr_assert_eq(dictionary_len(&to, DICTIONARY_LOCATIONS), 6);
	expect_location(2, "/a", 0x1);
	expect_location(3, "/a", 0x90000);
	expect_location(4, "/b", 0x2);
	expect_location(5, "/b", 0x5);
	/* By the root, and the shorter one first. */
	cr_assert_eq(dictionary_len(&to, DICTIONARY_STACKS), 5);
	EXPECT_STACK(1, 2, 4);
	EXPECT_STACK(2, 5);
	EXPECT_STACK(3, 1, 5);
	EXPECT_STACK(4, 3, 5);
	/* The duplicates are known. */
	cr_assert_eq(dictionary_copy(&to, &from, DICTIONARY_STACKS, used_stacks[0], &memo, &i), 0);
	cr_expect_eq(i, 4);
	dictionary_memo_done(&memo, &pool);
}

Test(arrange, without_room_nothing_is_left_behind)
{
	const int32_t a = mapping("/a");
	uint8_t used[101] = { 0 };
	const size_t before = pool.used;

	for (int i = 1; i <= 100; i++) {
		int32_t list[] = { location(a, (uint64_t)i), location(a, 1000 + (uint64_t)i) };

		used[stack(2, list)] = 1;
	}
	for (size_t room = 0; room < 32768; room += 512) {
		struct dictionary_memo memo = { 0 };

		pool.max = pool.used + room;
		const int r = arrange_stacks(&to, &from, used, &memo);

		cr_expect(r == 0 || r == -ENOBUFS);
		dictionary_memo_done(&memo, &pool);
		dictionary_done(&to);
		pool.max = 1u << 20;
		cr_assert_eq(dictionary_begin(&to, &pool, 1u << 20), 0);
	}
	cr_expect_gt(pool.used, before);
}
