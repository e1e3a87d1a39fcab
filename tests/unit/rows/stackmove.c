/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/stackmove.h"

#include <criterion/criterion.h>

#define FINDS(...) \
	stackmove_find((struct span){ .data = (const uint8_t[]){ __VA_ARGS__ }, \
				      .len = sizeof((const uint8_t[]){ __VA_ARGS__ }) })

Test(stackmove, code_that_moves_the_stack_is_found)
{
	cr_expect(FINDS(0x4c, 0x8d, 0x14, 0x24, 0x48, 0x81, 0xec, 8, 1, 0, 0), "OpenSSL: sub");
	cr_expect(FINDS(0x53, 0x55), "glibc's mpn_mul_1: push");
	cr_expect(FINDS(0x48, 0x89, 0xc8, 0x6a, 1), "push of a constant");
	cr_expect(FINDS(0x58), "pop");
	cr_expect(FINDS(0x48, 0x83, 0xe4, 0xf0), "and rsp, -16");
	cr_expect(FINDS(0x48, 0x8d, 0x64, 0x24, 0xf8), "lea rsp, [rsp - 8]");
	cr_expect(FINDS(0x48, 0x89, 0xc4), "mov rsp, rax");
	cr_expect(FINDS(0x48, 0x94), "xchg rsp, rax");
	cr_expect(FINDS(0x48, 0x87, 0xe0), "xchg rax, rsp");
	cr_expect(FINDS(0x48, 0x87, 0xc4), "xchg rsp, rax, the longer way");
	cr_expect(FINDS(0xc9), "leave");
	cr_expect(FINDS(0xc8, 8, 0, 0), "enter");
	cr_expect(FINDS(0x9c), "pushf");
}

Test(stackmove, an_undone_move_does_not_count)
{
	cr_expect_not(FINDS(0x9c, 0x9d, 0xc3), "pushf; popf; ret");
	cr_expect_not(FINDS(0x50, 0x9d, 0xeb, 0), "push rax; popf; jmp");
	cr_expect_not(FINDS(0x48, 0x8d, 0x64, 0x24, 0x80, 0x9c, 0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80,
			    0, 0, 0, 0xc3),
		      "lea rsp, [rsp - 128]; pushf; popf; lea rsp, [rsp + 128]; ret");
	cr_expect(FINDS(0x9c, 0x9d, 0x50), "one more");
	cr_expect(FINDS(0x50, 0x5c), "pop rsp");
}

Test(stackmove, other_code_moves_nothing)
{
	cr_expect_not(FINDS(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0xc3, 0x55),
		      "ret comes first");
	cr_expect_not(FINDS(0x74, 2, 0x55), "a branch comes first");
	cr_expect_not(FINDS(0xe8, 0, 0, 0, 0, 0x55), "a call comes first");
	cr_expect_not(FINDS(0x48, 0x89, 0x44, 0x24, 0xf8), "a store below RSP");
	cr_expect_not(FINDS(0x48, 0x89, 0xe0), "mov rax, rsp");
	cr_expect_not(FINDS(0x48, 0x81, 0xec, 8), "cut short");
	cr_expect_not(FINDS(0x06, 0x55), "no instruction");
	cr_expect_not(stackmove_find((struct span){ 0 }), "empty");
}
