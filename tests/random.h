/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that a test can repeat: xorshift64. The state is not 0. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
