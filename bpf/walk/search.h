/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The walker's searches. They are global functions that take and return only numbers, so the
 * verifier checks them once, and not once for each path that leads here. They are binary searches
 * without branches, since the verifier follows both sides of a branch: a loop of 12 turns would
 * have 2^12 paths.
 */
#ifndef BPF_WALK_SEARCH_H
#define BPF_WALK_SEARCH_H

#include "bpf/walk/env.h"

#define WALK_BSEARCH_MAPS 18 /* steps: 2^17 mappings */
#define WALK_BSEARCH_ROWS 12 /* steps: a block has at most 2,048 rows, one per byte */

/* Returns the index of the last mapping at `maps` that starts at or below pc, or 0 if there is
 * none. */
ENV_FUNCTION __u32 walk_search_maps(__u32 maps, __u32 map_count, __u64 pc)
{
	__u32 base = 0, n = map_count;

	for (int i = 0; i < WALK_BSEARCH_MAPS && n > 1; i++) {
		__u32 half = n / 2, position = maps + (base + half) * 8;
		const struct slab *s = env_slab(position, 8);

		if (!s)
			return 0;
		/* 1 if the mapping starts above pc. Both are halved, so that addresses of the upper
		 * half compare as numbers; starts are even. */
		__u32 above =
			((pc >> 1) - (ENV_AT(s, position, struct map_entry, 8)->start >> 1)) >> 63;
		base += half & (above - 1);
		n -= half;
	}
	return base;
}

/* Returns the last of the row words at `rows` that is at or below `wanted`; row 0 always is. */
ENV_FUNCTION __u32 walk_search_rows(__u32 rows, __u32 row_count, __u32 wanted)
{
	const struct slab *s = env_slab(rows, row_count);
	__u32 base = 0, n = row_count;

	if (!s)
		return TABLES_RULE_GAP;
	for (int i = 0; i < WALK_BSEARCH_ROWS && n > 1; i++) {
		__u32 half = n / 2;
		__u32 above = ((__u64)wanted - *ENV_AT(s, rows + base + half, __u32, 1)) >> 63;

		base += half & (above - 1);
		n -= half;
	}
	return *ENV_AT(s, rows + base, __u32, 1);
}

/* Returns the number of the rule in force at a file offset. */
ENV_INLINE __u32 walk_find_rule(const struct file_entry *f, __u64 offset)
{
	__u32 block = (__u32)(offset >> TABLES_BLOCK_SHIFT) - f->first_block;

	if (offset >> (TABLES_BLOCK_SHIFT + 31) || block >= f->blocks)
		return TABLES_RULE_GAP;
	__u32 position = f->index + block * 2;
	const struct slab *s = env_slab(position, 2);
	if (!s)
		return TABLES_RULE_GAP;
	const struct block_entry *b = ENV_AT(s, position, struct block_entry, 2);
	__u32 in_block = offset & ((1u << TABLES_BLOCK_SHIFT) - 1);

	return walk_search_rows(b->rows, b->count, in_block << 16 | 0xffff) & 0xffff;
}

#endif
