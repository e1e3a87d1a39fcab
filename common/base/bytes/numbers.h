/* SPDX-License-Identifier: Apache-2.0 */
/* Small arithmetic functions that many files need. */
#ifndef COMMON_BASE_BYTES_NUMBERS_H
#define COMMON_BASE_BYTES_NUMBERS_H

#include <stdint.h>
#include "bpf/mix.h"

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

/* For a field that is signed: INT64_MAX if n is larger. */
static inline int64_t numbers_signed(uint64_t n)
{
	return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

/* For a field of 32 bits: UINT32_MAX if n is larger. */
static inline uint32_t numbers_u32(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* One step of a hash: combines both halves of the product. b must be odd. Otherwise the lower half
 * loses bits, and numbers that follow one another collide. */
static inline uint64_t numbers_fold(uint64_t a, uint64_t b)
{
	const unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Spreads a number over all bits. For tables whose keys a peer chooses, who does not know the
 * seed. */
static inline uint64_t numbers_spread(uint64_t n, uint64_t seed)
{
	uint64_t h = (n ^ seed) * MIX_GOLDEN;

	h = (h ^ h >> 32 ^ seed >> 7) * MIX_FOLD;
	return h ^ h >> 32;
}

/* For qsort of uint32_t, in ascending order. */
static inline int numbers_rising(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

#endif
