/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "tools/prof-bpf/host/processes/reach.h"

#define OBJECT 0x7f0000001230ull
#define STRING 0x7f0000805678ull
#define TABLE 0x7f0001002000ull
#define CHARACTERS 0x7f0002003000ull
#define OTHER 0x7f0003004000ull
#define SLOT 3
#define SECOND 1000000000ull

/* An object of 64 bytes: at 16 a string of n characters of up to 4 bytes behind 8 + 32 bytes, at 24
 * a table behind its size. What is at 32 in the string is characters elsewhere. */
static const struct runtime_copy steps = {
	.steps = 3,
	.more = 1,
	.step = { { .bytes = 64 },
		  { .pointer = 16,
		    .bytes = 128,
		    .size_bytes = 8,
		    .size_at = 16,
		    .size_shift = 2,
		    .size_add = 40 },
		  { .pointer = 24, .bytes = 4096, .size_bytes = 8, .size_add = 8 },
		  { .from = 1, .pointer = 32, .bytes = 200 } },
};
static const struct runtime_need need = { .far = 2, .steps = 4, .object = 64, .bytes = 1000 };

static struct reach_rule rule_of(void *ctx, uint16_t slot)
{
	(void)ctx;
	return (struct reach_rule){ .copy = slot == SLOT ? &steps : NULL, .need = need };
}

static const struct reach_rules rules = { .of = rule_of };

static struct span words(const uint64_t *w, size_t n)
{
	return (struct span){ .data = (const uint8_t *)w, .len = n * sizeof(*w) };
}

static uint64_t of(const struct reach *r, uint64_t address, uint64_t length)
{
	return reach_of(r, address, length, &rules);
}

static size_t read_words(struct reach **r, uint64_t address, const uint64_t *w, size_t n)
{
	return reach_read(r, address, words(w, n), &rules, true);
}

/* The object, whose other words also point to memory. */
static const uint64_t object[8] = { OTHER, OTHER, STRING, TABLE, OTHER, OTHER, OTHER, OTHER };

static struct reach *with_object(void)
{
	struct reach *r = NULL;

	reach_add(&r, OBJECT, SLOT, 0, true);
	cr_assert_eq(read_words(&r, OBJECT, object, 8), sizeof(object));
	return r;
}

Test(reach, begins_at_objects_of_samples_and_has_their_bytes_alone)
{
	struct reach *r = NULL;

	cr_expect_eq(of(r, OBJECT, 8), 0);
	reach_add(&r, OBJECT, SLOT, 0, true);
	cr_expect_eq(of(r, OBJECT, 8), 8);
	cr_expect_eq(of(r, OBJECT, 4096), 64);
	cr_expect_eq(of(r, OBJECT + 8, 8), 0, "a request begins where the object does");
	cr_expect_eq(of(r, OBJECT & ~0xfffull, 4096), 0);
	cr_expect_eq(of(r, OBJECT - REACH_BEFORE, 4096), 64 + REACH_BEFORE);
	cr_expect_eq(of(r, OBJECT - REACH_BEFORE - 8, 8), 0);
	cr_expect_eq(of(r, STRING, 8), 0);
	reach_free(r);
}

Test(reach, an_object_without_a_runtime_is_not_within_reach)
{
	struct reach *r = NULL;

	reach_add(&r, OBJECT, SLOT + 5, 0, true);
	cr_expect_eq(of(r, OBJECT, 8), 0);
	cr_expect_eq(read_words(&r, OBJECT, object, 8), 0);
	reach_free(r);
}

Test(reach, only_words_of_steps_lead_further)
{
	struct reach *r = with_object();

	cr_expect_eq(of(r, STRING, 4096), 1000);
	cr_expect_eq(of(r, TABLE, 100000), REACH_BYTES, "the last one that is copied");
	cr_expect_eq(of(r, OTHER, 8), 0);
	cr_expect_eq(of(r, STRING - REACH_BEFORE, 8), 0);
	cr_expect_eq(of(r, STRING + 8, 8), 0);
	reach_free(r);
}

Test(reach, a_partial_read_reaches_only_what_was_read)
{
	struct reach *r = NULL;

	reach_add(&r, OBJECT, SLOT, 0, true);
	cr_expect_eq(read_words(&r, OBJECT, object, 3), 24);
	cr_expect_eq(of(r, STRING, 8), 8);
	cr_expect_eq(of(r, TABLE, 8), 0);
	reach_free(r);
}

Test(reach, an_object_read_with_memory_before_it_leads_to_the_same)
{
	struct reach *r = NULL;
	uint64_t with[9] = { CHARACTERS };

	memcpy(with + 1, object, sizeof(object));
	reach_add(&r, OBJECT, SLOT, 0, true);
	cr_expect_eq(read_words(&r, OBJECT - 8, with, 9), sizeof(with));
	cr_expect_eq(of(r, STRING, 8), 8);
	cr_expect_eq(of(r, TABLE, 8), 8);
	cr_expect_eq(of(r, CHARACTERS, 8), 0);
	reach_free(r);
}

Test(reach, a_piece_has_no_more_bytes_than_its_size_says)
{
	struct reach *r = with_object();
	uint64_t text[64] = { 0 };

	text[2] = 5;
	cr_expect_eq(read_words(&r, STRING, text, 64), 5 * 4 + 40);
	text[2] = 1000;
	cr_expect_eq(read_words(&r, STRING, text, 64), sizeof(text), "as much as was read");
	text[2] = 1ull << 62;
	cr_expect_eq(read_words(&r, STRING, text, 64), 24, "its head");
	cr_expect_eq(read_words(&r, STRING, text, 2), 16);
	text[0] = 17;
	cr_expect_eq(read_words(&r, TABLE, text, 64), 17 + 8);
	text[0] = REACH_BYTES;
	cr_expect_eq(read_words(&r, TABLE, text, 64), 8);
	reach_free(r);
}

Test(reach, steps_go_on_from_pieces_and_end)
{
	struct reach *r = with_object();
	uint64_t text[8] = { OTHER, OTHER, 3, OTHER, CHARACTERS, OTHER, OTHER, OTHER };

	cr_expect_eq(read_words(&r, STRING, text, 8), 3 * 4 + 40);
	cr_expect_eq(of(r, CHARACTERS, 4096), 200);
	cr_expect_eq(read_words(&r, CHARACTERS, object, 8), sizeof(object));
	cr_expect_eq(of(r, OTHER, 8), 0);
	text[2] = 0;
	text[4] = OTHER;
	cr_expect_eq(read_words(&r, STRING, text, 8), 40);
	cr_expect_eq(of(r, OTHER, 8), 8, "the pointer is within the size");
	reach_free(r);
}

Test(reach, memory_that_is_out_of_reach_leads_nowhere)
{
	struct reach *r = NULL;

	cr_expect_eq(read_words(&r, STRING, object, 8), 0);
	reach_add(&r, OBJECT, SLOT, 0, true);
	cr_expect_eq(read_words(&r, STRING, object, 8), 0);
	cr_expect_eq(of(r, TABLE, 8), 0);
	reach_free(r);
}

Test(reach, an_address_of_two_steps_has_the_bytes_of_both)
{
	struct reach *r = NULL;
	uint64_t both[8] = { [2] = STRING, [3] = STRING };
	uint64_t text[64] = { [0] = 300, [2] = 2 };

	reach_add(&r, OBJECT, SLOT, 0, true);
	cr_expect_eq(read_words(&r, OBJECT, both, 8), sizeof(both));
	cr_expect_eq(of(r, STRING, 4096), 4096);
	cr_expect_eq(read_words(&r, STRING, text, 64), 308);
	reach_free(r);
}

Test(reach, steps_beyond_the_need_do_not_suit)
{
	struct runtime_copy c = steps;

	cr_expect(reach_suits(&c, need));
	cr_expect(reach_suits(&(struct runtime_copy){ 0 }, need));
	c.step[0].bytes = 65;
	cr_expect_not(reach_suits(&c, need), "the object");
	c = steps;
	c.more = 2;
	cr_expect_not(reach_suits(&c, need), "the count");
	c.more = UINT32_MAX;
	cr_expect_not(reach_suits(&c, need), "the count");
	c = steps;
	c.step[3].bytes = 1001;
	cr_expect_not(reach_suits(&c, need), "the bytes");
	c = steps;
	c.step[3].from = 3;
	cr_expect_not(reach_suits(&c, need), "a later piece");
	c = steps;
	c.step[2].from = 1;
	c.step[3].from = 2;
	cr_expect_not(reach_suits(&c, need), "the distance");
	c = steps;
	c.step[1].size_add = 1000;
	cr_expect_not(reach_suits(&c, need), "what is added to the size");
	c = steps;
	c.step[1].size_bytes = 9;
	cr_expect_not(reach_suits(&c, need), "the width of the size");
}

/* A table whose address is at 16 in the object, and the index of an element at 10. */
static const struct runtime_copy element = {
	.steps = 2,
	.step = { { .bytes = 64 },
		  { .pointer = 16, .bytes = 8, .start = 72, .index_bytes = 2, .index_at = 10 } },
};
/* The object is such a table itself. */
static const struct runtime_copy own_element = {
	.steps = 2,
	.step = { { .bytes = 64 },
		  { .pointer = RUNTIME_ITSELF,
		    .bytes = 8,
		    .start = 72,
		    .index_bytes = 4,
		    .index_at = 8 } },
};

static struct reach_rule element_of(void *ctx, uint16_t slot)
{
	(void)slot;
	return (struct reach_rule){ .copy = ctx,
				    .need = { .far = 1, .steps = 2, .object = 64, .bytes = 64 } };
}

static uint64_t reaches(const struct runtime_copy *c, uint64_t to)
{
	const struct reach_rules by = { .of = element_of, .ctx = (void *)c };
	const uint64_t table[8] = { 0, 5 << 16, TABLE };
	struct reach *r = with_object();

	cr_expect_eq(reach_read(&r, OBJECT, words(table, 8), &by, true), 64);
	const uint64_t bytes = reach_of(r, to, 8, &by);
	reach_free(r);
	return bytes;
}

Test(reach, leads_to_the_element_of_a_table)
{
	cr_expect_eq(reaches(&element, TABLE + 72 + 5 * 8), 8);
	cr_expect_eq(reaches(&element, TABLE + 72), 0);
	cr_expect_eq(reaches(&own_element, OBJECT + 72 + (5 << 16) * 8), 8);
	cr_expect_eq(reaches(&own_element, TABLE + 72 + (5 << 16) * 8), 0);
}

Test(reach, has_elements_only_where_a_runtime_needs_them)
{
	struct runtime_need with = need;

	with.indexes = 1;
	cr_expect(reach_suits(&element, with));
	cr_expect(reach_suits(&own_element, with));
	cr_expect_not(reach_suits(&element, need));
	cr_expect_not(reach_suits(&own_element, need));
	struct runtime_copy c = element;
	c.step[1].index_at = 9;
	cr_expect_not(reach_suits(&c, with), "an index that is not aligned");
	c.step[1].index_at = 8;
	c.step[1].index_bytes = 8;
	cr_expect_not(reach_suits(&c, with), "a wide index");
}

Test(reach, has_a_ceiling_and_keeps_what_is_near)
{
	struct reach *r = NULL;
	uint64_t at[8] = { 0 };
	unsigned kept = 0;

	for (uint64_t i = 0; i < 200; i++)
		reach_add(&r, OBJECT + i * 64, SLOT, 0, true);
	for (uint64_t i = 0; i < 1000000; i++) {
		at[2] = TABLE + i * 64;
		read_words(&r, OBJECT, at, 8);
	}
	for (uint64_t i = 0; i < 200; i++)
		kept += of(r, OBJECT + i * 64, 8) == 8;
	cr_expect_eq(kept, 200);
	kept = 0;
	for (uint64_t i = 0; i < 1000000; i++)
		kept += of(r, TABLE + i * 64, 8) != 0;
	cr_expect(kept >= REACH_MOST / 2 && kept <= REACH_MOST, "%u", kept);
	cr_expect_leq(reach_bytes(r), REACH_MOST * 16 + 64);
	reach_free(r);
}

Test(reach, an_object_has_room_for_its_pieces_however_many_were_sampled_before)
{
	struct reach *r = NULL;

	for (uint64_t i = 0; i < 8 * REACH_MOST; i++)
		reach_add(&r, 0x500000000000 + i * 144, SLOT, i * SECOND / 1000, true);
	reach_add(&r, OBJECT, SLOT, 8 * REACH_MOST * SECOND / 1000, true);
	cr_assert_eq(read_words(&r, OBJECT, object, 8), sizeof(object));
	cr_expect_gt(of(r, STRING, 100), 0, "its string is within reach");
	cr_expect_gt(of(r, TABLE, 100), 0, "and its table");
	reach_free(r);
}

Test(reach, objects_and_their_pieces_have_room_however_many_are_sampled_at_once)
{
	struct reach *r = NULL;

	for (uint64_t i = 0; i < 8 * REACH_MOST; i++)
		reach_add(&r, 0x500000000000 + i * 144, SLOT, SECOND, true);
	reach_add(&r, OBJECT, SLOT, SECOND, true);
	cr_assert_eq(read_words(&r, OBJECT, object, 8), sizeof(object));
	cr_expect_gt(of(r, STRING, 100), 0, "its string is within reach");
	cr_expect_gt(of(r, TABLE, 100), 0, "and its table");
	for (uint64_t i = 0; i < 8 * REACH_MOST; i++) {
		const uint64_t at[8] = { [2] = 0x600000000000 + i * 144 };

		read_words(&r, OBJECT, at, 8);
	}
	cr_expect_eq(of(r, OBJECT, 8), 8, "pieces do not replace objects");
	reach_free(r);
}

Test(reach, takes_no_memory_that_it_may_not_take)
{
	struct reach *r = NULL;
	size_t before;

	reach_add(&r, OBJECT, SLOT, 0, false);
	cr_expect_null(r);
	cr_expect_eq(reach_bytes(r), 0);
	reach_add(&r, OBJECT, SLOT, 0, true);
	before = reach_bytes(r);
	for (uint64_t i = 0; i < 100000; i++)
		reach_add(&r, OBJECT + i * 64, SLOT, 0, false);
	cr_expect_eq(reach_bytes(r), before);
	cr_expect_eq(of(r, OBJECT + 99999 * 64, 8), 8, "the latest is there");
	reach_free(r);
}

Test(reach, numbers_that_are_no_addresses_take_no_room)
{
	struct reach *r = NULL;

	reach_add(&r, 0, SLOT, 0, true);
	reach_add(&r, 17, SLOT, 0, true);
	reach_add(&r, 1ull << 47, SLOT, 0, true);	  /* a key */
	reach_add(&r, 0x6d616e5f6f6c6568, SLOT, 0, true); /* text */
	cr_expect_null(r);
}
