/* SPDX-License-Identifier: Apache-2.0 */
/* Text in which %XX stands for a byte, as in URLs. A % without two hexadecimal digits behind it
 * stands for itself. */
#ifndef COMMON_BASE_PERCENT_H
#define COMMON_BASE_PERCENT_H

#include <stddef.h>
#include "common/base/hex.h"

/* The byte that the text has at *at, which is less than len. Steps behind it. */
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
