/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing of protobuf: a field with a message or bytes consists of a tag, a length, and the
 * contents. So packed messages can be combined without packing them again. Field numbers must be
 * below 16.
 *
 * Source: the encoding of Protocol Buffers, "Length-Delimited Records".
 */
#ifndef PROF_EXPORT_OTLP_FRAMING_H
#define PROF_EXPORT_OTLP_FRAMING_H

#include "common/base/bytes/buf.h"

#define FRAMING_HEAD 11 /* at most, in bytes */

static inline size_t framing_varint_size(uint64_t n)
{
	size_t size = 1;

	for (; n >= 0x80; n >>= 7)
		size++;
	return size;
}

/* The size of a field with n bytes of contents. */
static inline size_t framing_size(size_t n)
{
	return 1 + framing_varint_size(n) + n;
}

/* Appends the tag and the length of a field with n bytes. Errors of buf_append. */
static inline int framing_put_head(struct buf *b, unsigned field, size_t n)
{
	uint8_t head[FRAMING_HEAD] = { (uint8_t)(field << 3 | 2) };
	size_t len = 1;

	for (; n >= 0x80; n >>= 7)
		head[len++] = (uint8_t)(n | 0x80);
	head[len++] = (uint8_t)n;
	return buf_append(b, head, len);
}

/* Turns all bytes of b from `at` on into a field: moves them and inserts the tag and the length
 * before them. Errors of buf_append. */
static inline int framing_insert_head(struct buf *b, size_t at, unsigned field)
{
	const size_t n = b->len - at, head = framing_size(n) - n;
	uint8_t *from;
	int r = framing_put_head(b, field, n); /* first appended, then moved to `at` */

	if (r)
		return r;
	from = b->data + at;
	uint8_t copy[FRAMING_HEAD];

	memcpy(copy, from + n, head);
	memmove(from + head, from, n);
	memcpy(from, copy, head);
	return 0;
}

#endif
