/* SPDX-License-Identifier: Apache-2.0 */
#include "common/svm/svmcode.h"

#include <criterion/criterion.h>
#include <string.h>

#define SPAN(...) \
	(struct span) \
	{ \
		.data = (const uint8_t[]){ __VA_ARGS__ }, \
		.len = sizeof((const uint8_t[]){ __VA_ARGS__ }) \
	}

Test(svmcode, the_frame_of_each_kind_of_method_is_found)
{
	struct svmcode_frame f;

	cr_assert(svmcode_begins(SPAN(0x48, 0x83, 0xec, 0x18), &f));
	cr_expect(f.size == 0x18 && !f.pushed && !f.based && f.begins == 4);
	cr_assert(svmcode_begins(SPAN(0x48, 0x81, 0xec, 0x88, 1, 0, 0), &f));
	cr_expect(f.size == 0x188 && f.begins == 7);
	cr_assert(svmcode_begins(SPAN(0x55, 0x48, 0x83, 0xec, 0x40), &f));
	cr_expect(f.size == 0x40 && f.pushed == 1 && f.begins == 5);
	cr_assert(svmcode_begins(SPAN(0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x40), &f));
	cr_expect(f.size == 0x40 && f.pushed == 1 && !f.based && f.begins == 8);
	cr_assert(svmcode_begins(SPAN(0x48, 0x83, 0xec, 8, 0x48, 0x8b, 0xec), &f));
	cr_expect(f.size == 8 && f.based == 7 && f.begins == 4);
}

Test(svmcode, other_code_begins_no_method)
{
	struct svmcode_frame f;

	cr_expect_not(svmcode_begins(SPAN(0x48, 0x83, 0xec), &f), "cut short");
	cr_expect_not(svmcode_begins(SPAN(0x48, 0x81, 0xec, 0x18, 0, 0), &f), "cut short");
	cr_expect_not(svmcode_begins(SPAN(0x48, 0x83, 0xec, 0x10), &f), "calls misaligned");
	cr_expect_not(svmcode_begins(SPAN(0x48, 0x83, 0xec, 0xf8), &f), "sub rsp, -8");
	cr_expect_not(svmcode_begins(SPAN(0x48, 0x81, 0xec, 8, 0, 0, 0x80), &f), "too large");
	cr_expect_not(svmcode_begins(SPAN(0x55, 0x48, 0x89, 0xe5), &f));
	cr_expect_not(svmcode_begins(SPAN(0xc3), &f));
	cr_expect_not(svmcode_begins((struct span){ .data = (const uint8_t *)"", .len = 0 }, &f));
}

Test(svmcode, all_ends_of_a_method_are_found)
{
	/* add rsp, 24; ret; add rsp, 24; nop; add rsp, 24; jmp; add rsp, 24; jmp [rax + 8] */
	const struct span code = SPAN(0x48, 0x83, 0xec, 0x18, 0x48, 0x83, 0xc4, 0x18, 0xc3, 0x48,
				      0x83, 0xc4, 0x18, 0x90, 0x48, 0x83, 0xc4, 0x18, 0xe9, 1, 2, 3,
				      4, 0x48, 0x83, 0xc4, 0x18, 0xff, 0x60, 8);
	struct svmcode_frame f;
	struct svmcode_exit e = { .end = 4 };

	cr_assert(svmcode_begins(code, &f));
	cr_assert(svmcode_exit(code, &f, e.end, &e));
	cr_expect(e.popped == 8 && e.ret == 8 && e.end == 9);
	cr_assert(svmcode_exit(code, &f, e.end, &e));
	cr_expect(e.popped == 18 && e.end == 23);
	cr_assert(svmcode_exit(code, &f, e.end, &e));
	cr_expect(e.popped == 27 && e.end == 30);
	cr_expect_not(svmcode_exit(code, &f, e.end, &e));
	cr_expect_not(svmcode_exit((struct span){ code.data, 22 }, &f, 9, &e), "cut short");
}

Test(svmcode, a_pushed_frame_pointer_is_popped)
{
	const struct span code = SPAN(0x55, 0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xc4, 0x10, 0xc3,
				      0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3);
	struct svmcode_frame f;
	struct svmcode_exit e;

	cr_assert(svmcode_begins(code, &f));
	cr_assert(svmcode_exit(code, &f, f.begins, &e));
	cr_expect(e.popped == 14 && e.ret == 15 && e.end == 16);
}

Test(svmcode, a_frame_in_rbp_ends_with_lea)
{
	const struct span code = SPAN(0x48, 0x83, 0xec, 8, 0x48, 0x8b, 0xec, 0x51, 0x48, 0x8d, 0x65,
				      8, 0xc3);
	struct svmcode_frame f;
	struct svmcode_exit e;

	cr_assert(svmcode_begins(code, &f));
	cr_assert(svmcode_exit(code, &f, f.based, &e));
	cr_expect(e.popped == 12 && e.ret == 12 && e.end == 13);
}

Test(svmcode, padding_is_a_row_of_traps_up_to_the_alignment)
{
	uint8_t bytes[18] = { 0 };
	const struct span code = { .data = bytes, .len = sizeof(bytes) };

	memset(bytes + 12, 0xcc, 4);
	cr_expect_eq(svmcode_padding(code), 12);
	bytes[12] = 0;
	cr_expect_eq(svmcode_padding(code), code.len, "too few traps");
	memset(bytes + 10, 0xcc, 4);
	bytes[14] = bytes[15] = 0;
	cr_expect_eq(svmcode_padding(code), code.len, "they end elsewhere");
}
