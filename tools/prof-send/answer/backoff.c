/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/answer/backoff.h"

#include <assert.h>
#include "common/base/bytes/numbers.h"

#define DOUBLINGS 6 /* number of doublings until the maximum is reached */

static_assert(((uint64_t)BACKOFF_FIRST_MS << DOUBLINGS) >= BACKOFF_MOST_MS,
	      "the maximum is reached");

/* A random part of n, from 0 to n. */
static uint64_t part(uint64_t n, uint32_t random)
{
	return n * random >> 32;
}

uint64_t backoff_ms(unsigned failures, uint64_t asked_ms, uint32_t random)
{
	const unsigned doublings = failures < 1 ? 0 : failures - 1;
	const uint64_t step = numbers_smaller(BACKOFF_MOST_MS,
					      (uint64_t)BACKOFF_FIRST_MS
						      << numbers_smaller(doublings, DOUBLINGS));
	const uint64_t own = step / 2 + part(step / 2, random);

	return numbers_larger(own, asked_ms + part(asked_ms / 8, random));
}
