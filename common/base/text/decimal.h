/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers in text. A number consists only of digits: no sign, no blank, no other base. A
 * number that is too large becomes UINT64_MAX. */
#ifndef COMMON_BASE_TEXT_DECIMAL_H
#define COMMON_BASE_TEXT_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads up to max digits from the beginning of the text, which ends at a NUL or after max bytes.
 * Returns the number of digits. If it is 0, *ret is unchanged. */
static inline size_t decimal_read(const char *text, size_t max, uint64_t *ret)
{
	uint64_t n = 0;
	bool over = false;
	size_t i = 0;

	for (; i < max && text[i] >= '0' && text[i] <= '9'; i++)
		over |= __builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n);
	if (i)
		*ret = over ? UINT64_MAX : n;
	return i;
}

/* Takes a number from the beginning of *s. Returns false, and changes nothing, if there is none. */
static inline bool decimal_take(const char **s, uint64_t *ret)
{
	const size_t n = decimal_read(*s, SIZE_MAX, ret);

	*s += n;
	return n > 0;
}

/* Parses the whole text. Returns false, and leaves *ret unchanged, if it is not a number. */
static inline bool decimal_parse(const char *s, uint64_t *ret)
{
	uint64_t n;

	if (!decimal_take(&s, &n) || *s)
		return false;
	*ret = n;
	return true;
}

#endif
