/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/lispcall.h"

#include <criterion/criterion.h>

/* From SBCL 2.2.9: the frame, one instruction of those that follow, the call, a return of several
 * values, the end. */
static const uint8_t code[] = { 0x55, 0x55, 0x48, 0x89, 0xe5, 0x4d, 0x8b, 0x24, 0x24, 0xff,
				0x50, 0xfd, 0x73, 0x03, 0x48, 0x89, 0xdc, 0x5b, 0xc9, 0xc3 };

Test(lispcall, the_call_is_found_behind_the_frame)
{
	struct lispcall c;

	cr_assert(lispcall_find((struct span){ .data = code, .len = sizeof(code) }, &c));
	cr_expect_eq(c.call, 9);
	cr_expect_eq(c.ret, 19);
}

Test(lispcall, other_code_has_none)
{
	struct lispcall c;

	for (uint32_t n = 0; n < sizeof(code); n++)
		cr_expect_not(lispcall_find((struct span){ .data = code, .len = n }, &c));
	for (uint32_t from = 1; from < sizeof(code); from++)
		cr_expect_not(lispcall_find(
			(struct span){ .data = code + from, .len = sizeof(code) - from }, &c));
}
