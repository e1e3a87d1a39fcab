/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Mixing: multipliers that spread the bits of numbers, for hashes and check values. The kernel's
 * programs and the readers of recordings must agree on check values, so these never change.
 *
 * Untrusted users can choose numbers that collide. Tables where that matters also mix in a secret
 * seed, or use common/base/tables/hashtable.h.
 */
#ifndef BPF_MIX_H
#define BPF_MIX_H

#define MIX_GOLDEN 0x9e3779b97f4a7c15ull /* 2^64 divided by the golden ratio */
/* Those of MurmurHash3. */
#define MIX_FIRST 0xff51afd7ed558ccdull
#define MIX_SECOND 0xc4ceb9fe1a85ec53ull
#define MIX_FOLD 0xd6e8feb86659fd93ull /* for numbers_fold (common/base/bytes/numbers.h) */

/* Continues a hash with a number. `by` is one of the above. */
static inline unsigned long long mix_number(unsigned long long hash, unsigned long long number,
					    unsigned long long by)
{
	return (hash ^ hash >> 32 ^ number) * by;
}

#endif
