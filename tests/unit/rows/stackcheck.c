/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "common/rows/x86/stackcheck.h"

/* caml_apply2 of OCaml 5.3, without its middle. */
static const uint8_t near[] = {
	0x4c, 0x8d, 0x94, 0x24, 0xb8, 0xfe, 0xff, 0xff, /* lea r10, [rsp-0x148] */
	0x4d, 0x3b, 0x56, 0x28,				/* cmp r10, [r14+0x28] */
	0x72, 0x06,					/* jb slow: at 12 */
	0x48, 0x83, 0xec, 0x08,				/* sub rsp, 8: at 14 */
	0xff, 0xe6,					/* jmp rsi */
	0x6a, 0x22,					/* push 0x22: at 20 */
	0xe8, 0x01, 0xa4, 0x05, 0x00,			/* call caml_call_realloc_stack */
	0x41, 0x5a,					/* pop r10 */
	0xeb, 0xef,					/* jmp back: at 29 */
};

/* The same for a large frame and a large function. */
static const uint8_t far[] = {
	0x4c, 0x8d, 0x94, 0x24, 0xb8, 0xee, 0xff, 0xff, /* lea r10, [rsp-0x1148] */
	0x4d, 0x3b, 0x56, 0x20,				/* cmp r10, [r14+0x20] */
	0x0f, 0x82, 0x09, 0x00, 0x00, 0x00,		/* jb slow: at 12 */
	0x48, 0x81, 0xec, 0x08, 0x10, 0x00, 0x00,	/* sub rsp, 0x1008: at 18 */
	0xff, 0xe6,					/* jmp rsi */
	0x68, 0x22, 0x02, 0x00, 0x00,			/* push 0x222: at 27 */
	0xe8, 0x01, 0xa4, 0x05, 0x00,			/* call caml_call_realloc_stack */
	0x41, 0x5a,					/* pop r10 */
	0xe9, 0xe6, 0xff, 0xff, 0xff,			/* jmp back: at 39 */
};

static bool find(const uint8_t *code, uint32_t n, struct stackcheck *ret)
{
	uint32_t head = n < STACKCHECK_HEAD ? n : STACKCHECK_HEAD;
	uint32_t tail = n < STACKCHECK_TAIL ? n : STACKCHECK_TAIL;

	return stackcheck_find((struct span){ .data = code, .len = head },
			       (struct span){ .data = code + n - tail, .len = tail }, n, ret);
}

Test(stackcheck, the_slow_path_jumps_back_to_the_check)
{
	struct stackcheck c = { 0 };

	cr_assert(find(near, sizeof(near), &c));
	cr_assert_eq(c.back, 14);
	cr_assert_eq(c.slow, 20);
	cr_assert_eq(c.call, 22);
	cr_assert_eq(c.jump, 29);

	cr_assert(find(far, sizeof(far), &c));
	cr_assert_eq(c.back, 18);
	cr_assert_eq(c.slow, 27);
	cr_assert_eq(c.call, 32);
	cr_assert_eq(c.jump, 39);
}

/* Another byte in an opcode or a distance makes it other code. */
Test(stackcheck, other_code_has_none)
{
	static const uint8_t of_near[] = { 8, 9, 10, 12, 13, 20, 22, 27, 28, 29, 30 };
	static const uint8_t of_far[] = { 8,  9,  10, 12, 13, 14, 15, 16, 17,
					  27, 32, 37, 38, 39, 40, 41, 42, 43 };
	struct stackcheck c;
	uint8_t code[64];

	for (size_t i = 0; i < sizeof(of_near); i++) {
		memcpy(code, near, sizeof(near));
		code[of_near[i]] ^= 0x80;
		cr_assert_not(find(code, sizeof(near), &c), "near, at %u", of_near[i]);
	}
	for (size_t i = 0; i < sizeof(of_far); i++) {
		memcpy(code, far, sizeof(far));
		code[of_far[i]] ^= 0x80;
		cr_assert_not(find(code, sizeof(far), &c), "far, at %u", of_far[i]);
	}
	for (uint32_t n = 0; n < sizeof(near); n++)
		cr_assert_not(find(near, n, &c), "truncated to %u", n);
	/* It may begin with its comparison. */
	for (uint32_t n = 0; n < sizeof(near) - 8; n++)
		cr_assert_not(find(near + sizeof(near) - n, n, &c), "with its last %u", n);
}

/* A check is at the start of a function; code further on is not searched. */
Test(stackcheck, a_check_must_be_at_the_start)
{
	uint8_t code[64];
	struct stackcheck c;

	memset(code, 0x90, sizeof(code));
	memcpy(code + 4, near, sizeof(near));
	cr_assert(find(code, 4 + sizeof(near), &c));
	cr_assert_eq(c.back, 18);
	memset(code, 0x90, sizeof(code));
	memcpy(code + STACKCHECK_HEAD - 13, near, sizeof(near));
	cr_assert_not(find(code, STACKCHECK_HEAD - 13 + sizeof(near), &c));
}
