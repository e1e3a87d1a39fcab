/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "bpf/walk/bytes.h"

const struct env *env_current;

#define ROUNDS 100000

/* Words of few different bytes, so that all cases occur. */
static uint64_t some_word(void)
{
	static const uint8_t bytes[] = { 0x00, 0x01, 0x7f, 0x80, 0x81, 0xff, 0x48, 0x55 };
	uint64_t word = 0;

	for (int i = 0; i < 8; i++)
		word = word << 8 | bytes[rand() % 8];
	return word;
}

static uint64_t byte(uint64_t word, int i)
{
	return word >> 8 * i & 0xff;
}

Test(bytes, masks_hold_what_one_byte_after_the_other_holds)
{
	for (int n = 0; n < ROUNDS; n++) {
		const uint64_t former = some_word(), word = some_word(), b = byte(some_word(), 0);
		const uint64_t equal = bytes_equal(word, b);
		const uint64_t four = bytes_four(word, former, (uint32_t)some_word());

		for (int i = 0; i < 8; i++) {
			cr_assert_eq(byte(equal, i), byte(word, i) == b);
			cr_assert_eq(byte(BYTES_BEFORE(word, former, 3), i),
				     i < 3 ? byte(former, i + 5) : byte(word, i - 3));
			cr_assert_leq(byte(four, i), 1);
		}
		cr_assert_eq(BYTES_ANY(equal), equal != 0);
	}
}

Test(bytes, four_bytes_are_found_across_words)
{
	for (int at = 0; at < 8; at++) {
		/* The last of the four is byte `at` of the second word. */
		const uint64_t four = 0xe5894855, former = at < 3 ? four << 8 * (5 + at) : 0;
		const uint64_t word = at < 3 ? four >> 8 * (3 - at) : four << 8 * (at - 3);

		cr_expect_eq(bytes_four(word, former, (uint32_t)four), 1ull << 8 * at);
		cr_expect_eq(bytes_four(word ^ 1ull << 8 * at, former, (uint32_t)four), 0);
	}
}

Test(bytes, the_last_byte_of_a_mask_decides)
{
	for (uint64_t a = 1; a < 256; a++)
		for (uint64_t b = 0; b < 256; b++) {
			uint64_t first = 0, second = 0;
			int last = 0;

			for (int i = 0; i < 8; i++) {
				first |= (a >> i & 1) << 8 * i;
				second |= (b >> i & 1) << 8 * i;
				last = a >> i & 1 ? i : last;
			}
			cr_assert_eq(bytes_last(first), (uint64_t)last);
			if (!(a & b))
				cr_assert_eq(BYTES_LATER(first, second), a > b);
		}
}
