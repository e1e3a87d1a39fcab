/* SPDX-License-Identifier: Apache-2.0 */
/* Small sums that many files need. */
#ifndef COMMON_BASE_NUMBERS_H
#define COMMON_BASE_NUMBERS_H

#include <stdint.h>

#define NUMBERS_PAGE 4096u /* bytes of a page of x86-64 */

static inline uint64_t numbers_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t numbers_larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* a - b, or 0 if b is larger. */
static inline uint64_t numbers_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* A step of a hash: both halves of the product. */
static inline uint64_t numbers_fold(uint64_t a, uint64_t b)
{
	const unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* For qsort of uint32_t: the smallest first. */
static inline int numbers_rising(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

#endif
