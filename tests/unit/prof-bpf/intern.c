/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <malloc.h>
#include "tools/prof-bpf/stream/intern.h"

#define MANY 50000u

static struct intern_frame frame(uint32_t i)
{
	return (struct intern_frame){ .offset = 0x1000ull + i * 16ull,
				      .file = 1 + i % 7,
				      .kind = 1 };
}

Test(intern, each_thing_has_one_id_and_ids_count_from_one)
{
	struct intern *in;
	uint32_t id;
	bool fresh;

	cr_assert_eq(intern_new(64 << 20, &in), 0);
	for (int turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < MANY; i++) {
			struct intern_frame f = frame(i);

			cr_assert_eq(intern_frame(in, &f, &id, &fresh), 0);
			cr_assert_eq(id, i + 1);
			cr_assert_eq(fresh, turn == 0);
		}
	}
	intern_free(in);
}

Test(intern, stacks_differ_by_every_part_of_them)
{
	const uint32_t a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 };
	struct {
		const uint32_t *frames;
		uint32_t n, reason, at_file;
	} s[] = { { a, 3, 0, 0 }, { b, 3, 0, 0 }, { a, 2, 0, 0 },   { a, 0, 0, 0 },
		  { a, 3, 1, 0 }, { a, 3, 0, 1 }, { NULL, 0, 1, 2 } };
	struct intern *in;
	uint32_t id;
	bool fresh;

	cr_assert_eq(intern_new(1 << 20, &in), 0);
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
			cr_assert_eq(intern_stack(in, s[i].frames, s[i].n, s[i].reason,
						  s[i].at_file, &id, &fresh),
				     0);
			cr_assert_eq(id, i + 1);
			cr_assert_eq(fresh, turn == 0);
		}
	}
	intern_free(in);
}

Test(intern, an_object_is_new_once_in_each_process)
{
	struct intern *in;
	bool fresh;

	cr_assert_eq(intern_new(1 << 20, &in), 0);
	for (int turn = 0; turn < 2; turn++) {
		cr_assert_eq(intern_object(in, 1, 0x7f0000001000, 5, &fresh), 0);
		cr_assert_eq(fresh, turn == 0);
		cr_assert_eq(intern_object(in, 2, 0x7f0000001000, 5, &fresh), 0);
		cr_assert_eq(fresh, turn == 0);
		cr_assert_eq(intern_object(in, 1, 0x7f0000001000, 6, &fresh), 0);
		cr_assert_eq(fresh, turn == 0);
	}
	intern_reset(in);
	cr_assert_eq(intern_object(in, 1, 0x7f0000001000, 5, &fresh), 0);
	cr_assert(fresh);
	intern_free(in);
}

Test(intern, a_full_one_knows_what_it_has_and_begins_anew)
{
	struct intern *in;
	uint32_t id, n = 0;
	bool fresh;
	int r = 0;

	cr_assert_eq(intern_new(10000, &in), 0);
	for (; !r; n++)
		r = intern_function(in, n + 1, &id, &fresh);
	cr_assert_eq(r, INTERN_FULL);
	cr_assert_gt(n, 100u);
	cr_assert_eq(intern_function(in, 1, &id, &fresh), 0);
	cr_assert(id == 1 && !fresh);
	intern_reset(in);
	cr_assert_eq(intern_function(in, 7, &id, &fresh), 0);
	cr_assert(id == 1 && fresh);
	intern_free(in);
}

/* The ceiling limits memory: the charges cover the memory that is used. */
Test(intern, it_takes_no_more_than_its_ceiling)
{
	const size_t ceiling = 8 << 20;
	struct intern *in;
	struct mallinfo2 before = mallinfo2(), after;
	uint32_t id, n = 0;
	bool fresh;
	int r = 0;

	cr_assert_eq(intern_new(ceiling, &in), 0);
	for (; !r; n++) {
		struct intern_frame f = frame(n);

		r = intern_frame(in, &f, &id, &fresh);
	}
	after = mallinfo2();
	cr_assert_leq(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd + ceiling);
	cr_assert_gt(n, ceiling / 64);
	intern_free(in);
}
