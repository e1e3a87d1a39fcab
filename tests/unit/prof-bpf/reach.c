/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "tools/prof-bpf/host/reach.h"

#define OBJECT 0x7f0000001230ull
#define STRING 0x7f0000805678ull
#define FAR 0x7f0001002000ull
#define FARTHER 0x7f0002003000ull

static struct span word(const uint64_t *w)
{
	return (struct span){ .data = (const uint8_t *)w, .len = sizeof(*w) };
}

Test(reach, begins_at_objects_of_samples_and_follows_pointers_twice)
{
	struct reach *r = NULL;
	const uint64_t string = STRING, far = FAR, farther = FARTHER;

	cr_expect_eq(reach_of(r, OBJECT, 8), -1);
	reach_add(&r, OBJECT, 0);
	cr_expect_eq(reach_of(r, OBJECT, 8), 0);
	cr_expect_eq(reach_of(r, STRING, 8), -1);
	reach_read(&r, OBJECT, word(&string));
	cr_expect_eq(reach_of(r, STRING, 8), 1);
	cr_expect_eq(reach_of(r, STRING & ~0xfffull, REACH_BYTES), 1, "the rest of its page");
	cr_expect_eq(reach_of(r, STRING, REACH_BYTES + 1), -1);
	reach_read(&r, STRING & ~7ull, word(&far));
	cr_expect_eq(reach_of(r, FAR, 8), 2);
	reach_read(&r, FAR, word(&farther));
	cr_expect_eq(reach_of(r, FARTHER, 8), -1, "it leads no further");
	reach_free(r);
}

Test(reach, memory_that_is_out_of_reach_leads_nowhere)
{
	struct reach *r = NULL;
	const uint64_t far = FAR;

	reach_read(&r, STRING, word(&far));
	cr_expect_eq(reach_of(r, FAR, 8), -1);
	reach_add(&r, OBJECT, 0);
	reach_read(&r, STRING, word(&far));
	cr_expect_eq(reach_of(r, FAR, 8), -1);
	reach_free(r);
}

Test(reach, what_lies_before_an_object_belongs_to_it)
{
	struct reach *r = NULL;

	reach_add(&r, 0x7f0000005000, 0);
	cr_expect_eq(reach_of(r, 0x7f0000005000 - 8, 700), 0);
	cr_expect_eq(reach_of(r, 0x7f0000005000 - REACH_BEFORE - 1, 8), -1);
	reach_free(r);
}

Test(reach, words_of_an_address_that_is_not_aligned_are_those_that_are)
{
	struct reach *r = NULL;
	uint8_t bytes[20] = { 0 };
	const uint64_t far = FAR;

	memcpy(bytes + 4, &far, sizeof(far));
	reach_add(&r, OBJECT, 0);
	reach_read(&r, OBJECT + 4, (struct span){ .data = bytes, .len = sizeof(bytes) });
	cr_expect_eq(reach_of(r, FAR, 8), 1);
	reach_free(r);
}

Test(reach, has_a_ceiling_and_keeps_what_is_near)
{
	struct reach *r = NULL;
	unsigned kept = 0;

	for (uint64_t i = 0; i < 200; i++)
		reach_add(&r, OBJECT + i * 4096, 0);
	for (uint64_t i = 0; i < 1000000; i++)
		reach_add(&r, FAR + i * 4096, 1 + i % 2);
	for (uint64_t i = 0; i < 200; i++)
		kept += reach_of(r, OBJECT + i * 4096, 8) == 0;
	cr_expect_eq(kept, 200);
	kept = 0;
	for (uint64_t i = 0; i < 1000000; i++)
		kept += reach_of(r, FAR + i * 4096, 8) >= 0;
	cr_expect_leq(kept, REACH_MOST + 256, "%u", kept);
	reach_free(r);
}

Test(reach, numbers_that_are_no_addresses_take_no_room)
{
	struct reach *r = NULL;

	reach_add(&r, 0, 0);
	reach_add(&r, 17, 0);
	reach_add(&r, 0x6d616e5f6f6c6568, 0); /* text */
	cr_expect_null(r);
}
