/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "common/rows/x86/ehreturn.h"

/* _Unwind_Resume of gcc 12, without irrelevant parts. */
static const uint8_t resume[] = {
	0x55,					  /* push rbp */
	0x48, 0x89, 0xe5,			  /* mov rbp, rsp */
	0x48, 0x8d, 0x75, 0x10,			  /* lea rsi, [rbp+0x10] */
	0x4c, 0x8d, 0xad, 0xd0, 0xfe, 0xff, 0xff, /* lea r13, [rbp-0x130] */
	0x4c, 0x8d, 0xa5, 0xe0, 0xfd, 0xff, 0xff, /* lea r12, [rbp-0x220] */
	0x4c, 0x89, 0xe7,			  /* mov rdi, r12 */
	0x48, 0x8b, 0x55, 0x08,			  /* mov rdx, [rbp+8] */
	0xe8, 0x01, 0x02, 0x03, 0x04,		  /* call uw_init_context_1 */
	0x75, 0x2e,				  /* jne, beyond the end */
	0x4c, 0x89, 0xee,			  /* mov rsi, r13: at 36 */
	0x4c, 0x89, 0xe7,			  /* mov rdi, r12 */
	0xe8, 0x01, 0x02, 0x03, 0x04,		  /* call uw_install_context_1: at 42 */
	0x48, 0x8b, 0xb5, 0x68, 0xff, 0xff, 0xff, /* mov rsi, [rbp-0x98] */
	0x48, 0x8b, 0xbd, 0x60, 0xff, 0xff, 0xff, /* mov rdi, [rbp-0xa0] */
	0x48, 0x89, 0xc2,			  /* mov rdx, rax */
	0xe8, 0x05, 0x06, 0x07, 0x08,		  /* call _Unwind_DebugHook */
	0x74, 0x04,				  /* je, over the shadow stack's part */
	0xf3, 0x48, 0x0f, 0xae, 0xe8,		  /* incsspq rax */
	0x48, 0x89, 0xd1,			  /* mov rcx, rdx */
	0x4c, 0x8b, 0x65, 0xe0,			  /* mov r12, [rbp-0x20] */
	0x48, 0x8b, 0x6d, 0x00,			  /* mov rbp, [rbp] */
	0x48, 0x89, 0xcc,			  /* mov rsp, rcx: at 87 */
	0x59, 0xff, 0xe1,			  /* pop rcx; jmp rcx */
};
#define INSTALL 42
#define TOLD 69
#define TAKEN 87
#define RA (-0x220 + 0x98)

Test(ehreturn, from_the_call_that_overwrites_to_where_rsp_is_taken)
{
	struct ehreturn e = { 0 };

	cr_assert(ehreturn_find(resume, sizeof(resume), &e));
	cr_assert_eq(e.from, INSTALL);
	cr_assert_eq(e.to, TAKEN);
	cr_assert_eq(e.ra, RA);
	cr_assert_eq(e.ra_to, TOLD);

	/* Older code ends with a ret instead of a jump through a register. */
	uint8_t older[sizeof(resume)];

	memcpy(older, resume, sizeof(resume));
	older[TAKEN + 3] = 0xc3;
	cr_assert(ehreturn_find(older, TAKEN + 4, &e));
	cr_assert_eq(e.to, TAKEN);
}

/* With these bytes in place of the original, rows end, but no return address is found. */
static void lost(unsigned at, const char *bytes, unsigned n)
{
	uint8_t other[sizeof(resume)];
	struct ehreturn e = { 0 };

	memcpy(other, resume, sizeof(resume));
	memcpy(other + at, bytes, n);
	cr_assert(ehreturn_find(other, sizeof(other), &e), "at %u", at);
	cr_assert_eq(e.to, TAKEN, "at %u", at);
	cr_assert_eq(e.ra, 0, "at %u: %d", at, e.ra);
}

Test(ehreturn, no_return_address_is_guessed)
{
	lost(7, "\x18", 1);	     /* the call gets another CFA */
	lost(28, "\x10", 1);	     /* or another return address */
	lost(11, "\x80\xff", 2);     /* the handler is not from the other context */
	lost(36, "\x4c\x89\xe6", 3); /* the other context is its own */
	lost(39, "\x4c\x89\xef", 3); /* the own context is not the initialized one */
	lost(60, "\x58", 1);	     /* the CFA does not come before the handler */
	lost(2, "\x89\xc5\x90", 2);  /* RBP is unknown */
	lost(80, "\x48\x89\xc5\x90", 4);
}

Test(ehreturn, other_functions_have_none)
{
	static const uint8_t plain[] = { 0xe8, 1, 2, 3, 4, 0xe8, 1, 2, 3, 4, 0x59, 0xc3 };
	/* The calls are on another path, which does not lead here. */
	static const uint8_t apart[] = { 0xe8, 1, 2,	3,    4,    0xe8, 1,   2,
					 3,    4, 0xc3, 0x48, 0x89, 0xcc, 0xc3 };
	struct ehreturn e;

	cr_assert_not(ehreturn_find(plain, sizeof(plain), &e));
	cr_assert_not(ehreturn_find(apart, sizeof(apart), &e));
	for (uint32_t n = 0; n <= TAKEN; n++)
		cr_assert_not(ehreturn_find(resume, n, &e), "truncated to %u", n);
}
