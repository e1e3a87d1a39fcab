/* SPDX-License-Identifier: Apache-2.0 */
/* A str: borrowed text with a length. */
#ifndef COMMON_BASE_BYTES_STR_H
#define COMMON_BASE_BYTES_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif
