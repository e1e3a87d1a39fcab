/* SPDX-License-Identifier: Apache-2.0 */
/* Characters in UTF-8. */
#ifndef COMMON_BASE_TEXT_UTF8_H
#define COMMON_BASE_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xfffdu /* replaces invalid characters */

/* Encodes a character. An invalid one, such as half of a UTF-16 pair, becomes UTF8_REPLACEMENT.
 * Returns the number of bytes, 1 to 4. */
static inline size_t utf8_encode(uint32_t c, char to[static 4])
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = UTF8_REPLACEMENT;
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}

	const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; --i > 0; c >>= 6)
		to[i] = (char)(0x80 | (c & 63));
	/* The first byte begins with as many ones as there are bytes. */
	to[0] = (char)(0xf00 >> n | c);
	return n;
}

/* Decodes the character at the beginning of s. Returns its length in bytes; 0: it is not well
 * formed. len: bytes of s, at least 1. */
static inline size_t utf8_decode(const uint8_t *s, size_t len, uint32_t *ret_code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n;
	uint32_t code;

	if (s[0] < 0x80) {
		*ret_code = s[0];
		return 1;
	}
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		n = 2;
		code = s[0] & 0x1f;
	} else if ((s[0] & 0xf0) == 0xe0) {
		n = 3;
		code = s[0] & 0x0f;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		n = 4;
		code = s[0] & 0x07;
	} else {
		return 0;
	}
	if (len < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return n;
}

#endif
