/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/stackcheck.h"

static int32_t signed_at(const uint8_t *p, uint32_t n)
{
	int32_t wide;

	if (n == 1)
		return (int8_t)*p;
	memcpy(&wide, p, 4);
	return wide;
}

/* Whether the n bytes before `at` exist and begin with these bytes. */
static bool is_before(struct span s, uint32_t at, uint32_t n, const char *bytes, uint32_t len)
{
	return n <= at && at <= s.len && memcmp(s.data + at - n, bytes, len) == 0;
}

/* Whether a check ends at `back` and branches to `slow`. */
static bool is_check(struct span head, uint32_t back, uint32_t slow)
{
	uint32_t branch;

	if (is_before(head, back, 2, "\x72", 1) &&
	    (int64_t)back + signed_at(head.data + back - 1, 1) == slow)
		branch = back - 2;
	else if (is_before(head, back, 6, "\x0f\x82", 2) &&
		 (int64_t)back + signed_at(head.data + back - 4, 4) == slow)
		branch = back - 6;
	else
		return false;
	return is_before(head, branch, 4, "\x4d\x3b\x56", 3);
}

/* Matches the slow path with a push and a jump of this length: one or four bytes after the
 * opcode. */
static bool is_slow(struct span head, struct span tail, uint32_t size, uint32_t push, uint32_t jump,
		    struct stackcheck *ret)
{
	const uint32_t end = (uint32_t)tail.len;

	/* The call has five bytes, the pop two. */
	if (!is_before(tail, end, jump, jump == 2 ? "\xeb" : "\xe9", 1) ||
	    !is_before(tail, end - jump, 2, "\x41\x5a", 2) ||
	    !is_before(tail, end - jump, 7, "\xe8", 1) ||
	    !is_before(tail, end - jump - 7, push, push == 2 ? "\x6a" : "\x68", 1))
		return false;

	const uint32_t slow = size - jump - 7 - push;
	const int64_t back = size + (int64_t)signed_at(tail.data + end - jump + 1, jump - 1);

	if (back < 0 || back > (int64_t)head.len || back >= slow ||
	    !is_check(head, (uint32_t)back, slow))
		return false;
	*ret = (struct stackcheck){
		.back = (uint32_t)back, .slow = slow, .call = slow + push, .jump = size - jump
	};
	return true;
}

bool stackcheck_find(struct span head, struct span tail, uint32_t size, struct stackcheck *ret)
{
	return is_slow(head, tail, size, 2, 2, ret) || is_slow(head, tail, size, 2, 5, ret) ||
	       is_slow(head, tail, size, 5, 2, ret) || is_slow(head, tail, size, 5, 5, ret);
}
