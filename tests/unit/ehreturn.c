/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "tools/prof-deltas/ehreturn.h"

/* As gcc 12 ends _Unwind_Resume. */
static const uint8_t tail[] = {
	0x75, 0x2e,		      /* jne, over the end */
	0x48, 0x89, 0xde,	      /* mov rsi, rbx */
	0xe8, 0x01, 0x02, 0x03, 0x04, /* call uw_install_context_1: at 5 */
	0x48, 0x8b, 0xb5, 0xe8, 0xfd, 0xff, 0xff, 0x48, 0x89, 0xc2, /* mov rdx, rax */
	0xe8, 0x05, 0x06, 0x07, 0x08,				    /* call _Unwind_DebugHook */
	0x74, 0x04,		      /* je, over what shadow stacks need */
	0xf3, 0x48, 0x0f, 0xae, 0xe8, /* incsspq rax */
	0x48, 0x89, 0xd1,	      /* mov rcx, rdx */
	0x48, 0x8b, 0x6d, 0x00,	      /* mov rbp, [rbp] */
	0x48, 0x89, 0xcc,	      /* mov rsp, rcx: at 41 */
	0x59, 0xff, 0xe1,	      /* pop rcx; jmp rcx */
};

Test(ehreturn, from_the_call_that_overwrites_to_where_rsp_is_taken)
{
	uint32_t from = 0, to = 0;

	cr_assert(ehreturn_find(tail, sizeof(tail), &from, &to));
	cr_assert_eq(from, 5);
	cr_assert_eq(to, 39);

	/* Before the jump was through a register it was a return. */
	uint8_t older[sizeof(tail)];

	memcpy(older, tail, sizeof(tail));
	older[42] = 0xc3;
	cr_assert(ehreturn_find(older, 43, &from, &to));
	cr_assert_eq(to, 39);
}

Test(ehreturn, other_functions_have_none)
{
	static const uint8_t plain[] = { 0xe8, 1, 2, 3, 4, 0xe8, 1, 2, 3, 4, 0x59, 0xc3 };
	/* The calls are another path's, which does not come here. */
	static const uint8_t apart[] = { 0xe8, 1, 2,	3,    4,    0xe8, 1,   2,
					 3,    4, 0xc3, 0x48, 0x89, 0xcc, 0xc3 };
	uint32_t from, to;

	cr_assert_not(ehreturn_find(plain, sizeof(plain), &from, &to));
	cr_assert_not(ehreturn_find(apart, sizeof(apart), &from, &to));
	for (uint32_t n = 0; n <= 40; n++)
		cr_assert_not(ehreturn_find(tail, n, &from, &to), "cut short to %u", n);
}
