/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Searches code for patterns, eight bytes at a time: a word, the first byte lowest. A mask has the
 * lowest bit of each byte where a comparison holds. Nothing here has a branch, since the verifier
 * would follow both sides of it.
 */
#ifndef BPF_WALK_BYTES_H
#define BPF_WALK_BYTES_H

#include "bpf/walk/env.h"

/* A word of eight equal bytes. */
#define BYTES_ALL(b) ((b)*0x0101010101010101ull)
/* For each byte of a word, the byte that lies n before it. former: the previous word. */
#define BYTES_BEFORE(word, former, n) ((word) << 8 * (n) | (former) >> (64 - 8 * (n)))
/* 1 if the mask is not empty. */
#define BYTES_ANY(mask) ((0 - (mask)) >> 63)
/* 1 if the last byte of mask a comes after that of mask b. The masks have no byte in common. */
#define BYTES_LATER(a, b) (((b) - (a)) >> 63)

/* Returns a mask of the bytes that are 0. The compiler would make branches if it knew which bits
 * the result has. */
ENV_INLINE __u64 bytes_zero(__u64 word)
{
	const __u64 low = BYTES_ALL(0x7f);
	__u64 mask = ~(((word & low) + low) | word) >> 7 & BYTES_ALL(1);

	ENV_OPAQUE(mask);
	return mask;
}

/* Returns a mask of the bytes that equal b. */
ENV_INLINE __u64 bytes_equal(__u64 word, __u64 b)
{
	return bytes_zero(word ^ BYTES_ALL(b));
}

/* Returns a mask of the last bytes of matches of `four`, a word of four bytes, the first one
 * lowest. */
ENV_INLINE __u64 bytes_four(__u64 word, __u64 former, __u32 four)
{
	return bytes_zero((BYTES_BEFORE(word, former, 3) ^ BYTES_ALL(four & 0xffull)) |
			  (BYTES_BEFORE(word, former, 2) ^ BYTES_ALL(four >> 8 & 0xffull)) |
			  (BYTES_BEFORE(word, former, 1) ^ BYTES_ALL(four >> 16 & 0xffull)) |
			  (word ^ BYTES_ALL(four >> 24 & 0xffull)));
}

/* Returns the index of the last byte of a mask that is not empty. */
ENV_INLINE __u64 bytes_last(__u64 mask)
{
	__u64 half = BYTES_ANY(mask >> 32) << 5, quarter, eighth;

	mask >>= half;
	quarter = BYTES_ANY(mask >> 16) << 4;
	mask >>= quarter;
	eighth = mask >> 8 << 3;
	return (half + quarter + eighth) >> 3;
}

#endif
