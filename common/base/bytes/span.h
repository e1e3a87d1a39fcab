/* SPDX-License-Identifier: Apache-2.0 */
/* A span: borrowed bytes with a length, read from the front within bounds. Every tool reads foreign
 * bytes through spans. */
#ifndef COMMON_BASE_BYTES_SPAN_H
#define COMMON_BASE_BYTES_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const uint8_t *data; /* borrowed; not NULL unless len is 0 */
	size_t len;
};

/* Takes n bytes from the beginning into *ret. Returns false, and leaves s unchanged, if fewer are
 * left. */
static inline bool span_take(struct span *s, size_t n, struct span *ret)
{
	if (s->len < n)
		return false;
	*ret = (struct span){ .data = s->data, .len = n };
	s->data += n;
	s->len -= n;
	return true;
}

/* Copies n bytes from the beginning to dst. Used for fixed-width fields, which are little-endian
 * like our hosts. */
static inline bool span_read(struct span *s, void *dst, size_t n)
{
	struct span part;

	if (!span_take(s, n, &part))
		return false;
	memcpy(dst, part.data, n);
	return true;
}

/* The n bytes at this offset; s is unchanged. Returns false if s does not contain all of them. */
static inline bool span_sub(struct span s, uint64_t offset, uint64_t n, struct span *ret)
{
	if (offset > s.len || n > s.len - offset)
		return false;
	*ret = (struct span){ .data = s.data + offset, .len = (size_t)n };
	return true;
}

#endif
