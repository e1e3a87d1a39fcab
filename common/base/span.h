/* SPDX-License-Identifier: Apache-2.0 */
/* A span: borrowed bytes with a length, read from the front within bounds. Every tool reads foreign
 * bytes through spans. */
#ifndef COMMON_BASE_SPAN_H
#define COMMON_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const uint8_t *data; /* borrowed; not NULL unless len is 0 */
	size_t len;
};

/* Text, often untrusted; not NUL-terminated. */
struct str {
	const char *data; /* borrowed */
	uint32_t len;
};

#define STR_LIT(s) ((struct str){ .data = (s), .len = sizeof(s) - 1 })

static inline struct str str_from(const char *s)
{
	return (struct str){ .data = s, .len = s ? (uint32_t)strlen(s) : 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (!a.len || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool str_starts(struct str s, const char *with)
{
	const size_t n = strlen(with);

	return s.len >= n && (!n || memcmp(s.data, with, n) == 0);
}

static inline bool str_ends_with(struct str s, struct str with)
{
	return s.len >= with.len &&
	       (!with.len || memcmp(s.data + s.len - with.len, with.data, with.len) == 0);
}

static inline bool str_ends(struct str s, const char *with)
{
	return str_ends_with(s, str_from(with));
}

/* At most max bytes from the beginning of s. Does not split a character if s is UTF-8. */
static inline struct str str_cut(struct str s, size_t max)
{
	if (s.len <= max)
		return s;
	size_t at = max;

	while (at && max - at < 3 && ((uint8_t)s.data[at] & 0xc0) == 0x80)
		at--;
	if (((uint8_t)s.data[at] & 0xc0) == 0x80)
		at = max; /* no lead byte nearby, so this is not UTF-8 */
	s.len = (uint32_t)at;
	return s;
}

/* A path without its folders; the whole path if it ends in a slash. */
static inline struct str str_base_name(struct str path)
{
	const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;

	if (slash && slash + 1 < path.data + path.len) {
		path.len -= (uint32_t)(slash + 1 - path.data);
		path.data = slash + 1;
	}
	return path;
}

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
