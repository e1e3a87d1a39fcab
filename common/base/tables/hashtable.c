/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/tables/hashtable.h"

#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

static uint64_t turned(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void round_of(uint64_t v[static 4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = turned(v[1], 13) ^ v[0];
	v[3] = turned(v[3], 16) ^ v[2];
	v[0] = turned(v[0], 32) + v[3];
	v[2] += v[1];
	v[3] = turned(v[3], 21) ^ v[0];
	v[1] = turned(v[1], 17) ^ v[2];
	v[2] = turned(v[2], 32);
}

uint64_t hashtable_siphash(const uint64_t key[static 2], const void *at, size_t size)
{
	const uint8_t *from = at;
	uint64_t word;
	uint64_t v[] = { key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573 };

	for (size_t left = size; left >= sizeof(word); left -= sizeof(word)) {
		memcpy(&word, from, sizeof(word));
		from += sizeof(word);
		v[3] ^= word;
		round_of(v);
		v[0] ^= word;
	}
	word = 0;
	memcpy(&word, from, size % sizeof(word));
	word |= (uint64_t)size << 56;
	v[3] ^= word;
	round_of(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		round_of(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hashtable_hash(const void *at, size_t size)
{
	static uint64_t key[2];
	static bool known;

	if (!known) {
		/* Sixteen random bytes from the kernel, which each process gets at exec. */
		const void *random = (const void *)getauxval(AT_RANDOM);

		if (random)
			memcpy(key, random, sizeof(key));
		known = true;
	}
	return hashtable_siphash(key, at, size);
}
