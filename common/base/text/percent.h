/* SPDX-License-Identifier: Apache-2.0 */
/* Text in which %XX stands for a byte, as in URLs. A % that is not followed by two hexadecimal
 * digits stands for itself. */
#ifndef COMMON_BASE_TEXT_PERCENT_H
#define COMMON_BASE_TEXT_PERCENT_H

#include <stddef.h>
#include "common/base/text/hex.h"

/* Returns the byte at *at, which must be less than len, and advances *at past it. */
static inline char percent_next(const char *text, size_t len, size_t *at)
{
	const char *p = text + (*at)++;
	const int byte = *p == '%' && len - *at >= 2 ? hex_byte(p + 1) : -1;

	if (byte < 0)
		return *p;
	*at += 2;
	return (char)byte;
}

#endif
