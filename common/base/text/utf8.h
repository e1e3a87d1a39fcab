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

#endif
