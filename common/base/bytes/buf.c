/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/bytes/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int buf_reserve(struct buf *b, size_t n)
{
	size_t want;

	if (__builtin_add_overflow(b->len, n, &want) || (b->max && want > b->max))
		return -ENOBUFS;
	if (want <= b->cap)
		return 0;
	size_t cap = b->cap ? b->cap : 64;

	/* Doubling keeps appending linear; the ceiling bounds it. */
	while (cap < want)
		if (__builtin_mul_overflow(cap, 2, &cap))
			return -ENOMEM;
	if (b->max && cap > b->max)
		cap = b->max;
	uint8_t *data = realloc(b->data, cap);

	if (!data)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_append(struct buf *b, const void *data, size_t n)
{
	int r = buf_reserve(b, n);

	if (r || !n)
		return r;
	memcpy(b->data + b->len, data, n);
	b->len += n;
	return 0;
}

int buf_append_str(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(NULL, 0, fmt, args);

	va_end(args);
	if (n < 0)
		return -EINVAL;
	/* vsnprintf also writes a NUL, for which the ceiling may leave no room. Then print into
	 * separate memory. */
	int r = buf_reserve(b, (size_t)n);

	if (r)
		return r;
	va_start(args, fmt);
	if (b->cap - b->len > (size_t)n) {
		vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, args);
	} else {
		char *text = NULL;

		if (vasprintf(&text, fmt, args) != n)
			r = -ENOMEM;
		else if (n)
			memcpy(b->data + b->len, text, (size_t)n);
		free(text);
	}
	va_end(args);
	if (!r)
		b->len += (size_t)n;
	return r;
}

void buf_consume(struct buf *b, size_t n)
{
	if (n >= b->len) {
		b->len = 0;
		return;
	}
	if (!n)
		return;
	b->len -= n;
	memmove(b->data, b->data + n, b->len);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .max = b->max };
}
