/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/bytes/buf.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(buf, append_keeps_every_byte)
{
	struct buf b = BUF_INIT(0);

	for (int i = 0; i < 5000; i++) {
		uint8_t byte = (uint8_t)(i * 7);

		cr_assert_eq(buf_append(&b, &byte, 1), 0);
	}
	cr_assert_eq(b.len, 5000);
	for (int i = 0; i < 5000; i++)
		cr_assert_eq(b.data[i], (uint8_t)(i * 7));
	buf_done(&b);
	cr_assert_null(b.data);
}

Test(buf, ceiling_is_reached_exactly_and_refused_beyond)
{
	struct buf b = BUF_INIT(100);
	uint8_t bytes[101] = { 0 };

	cr_assert_eq(buf_append(&b, bytes, 101), -ENOBUFS);
	cr_assert_eq(b.len, 0);
	cr_assert_eq(buf_append(&b, bytes, 70), 0);
	cr_assert_eq(buf_append(&b, bytes, 31), -ENOBUFS);
	cr_assert_eq(b.len, 70);
	cr_assert_eq(buf_append(&b, bytes, 30), 0);
	cr_assert_leq(b.cap, 100);
	buf_done(&b);
}

Test(buf, size_that_overflows_is_refused)
{
	struct buf b = BUF_INIT(0);

	cr_assert_eq(buf_append(&b, "x", 1), 0);
	cr_assert_eq(buf_reserve(&b, SIZE_MAX), -ENOBUFS);
	cr_assert_eq(buf_reserve(&b, SIZE_MAX - 1), -ENOMEM);
	cr_assert_eq(b.len, 1);
	buf_done(&b);
}

Test(buf, printf_fills_the_ceiling_without_room_for_a_nul)
{
	struct buf b = BUF_INIT(8);

	cr_assert_eq(buf_printf(&b, "%d-%s", 12, "abcde"), 0);
	cr_assert_eq(b.len, 8);
	cr_assert_eq(memcmp(b.data, "12-abcde", 8), 0);
	cr_assert_eq(buf_printf(&b, "%c", 'x'), -ENOBUFS);
	cr_assert_eq(b.len, 8);
	buf_done(&b);
}

Test(buf, consume_moves_the_rest_to_the_front)
{
	struct buf b = BUF_INIT(0);

	cr_assert_eq(buf_append_str(&b, "hello, world"), 0);
	buf_consume(&b, 7);
	cr_assert_eq(b.len, 5);
	cr_assert_eq(memcmp(b.data, "world", 5), 0);
	buf_consume(&b, 5);
	cr_assert_eq(b.len, 0);
	cr_assert_eq(buf_append(&b, NULL, 0), 0);
	buf_done(&b);
}
