/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* What was found in a block of a long text that can only be read from its beginning: the line where
 * a block of a script begins, or the place of some of WebAssembly's names. Cached, since what is
 * looked for next is often behind it. */
#ifndef BPF_V8_V8_BLOCK_H
#define BPF_V8_V8_BLOCK_H

#include "bpf/v8/v8_state.h"

struct v8_block {
	__u64 text; /* identity of the text and the block; 0: unused */
	__u64 value;
};
#define V8_BLOCKS 2048
#define V8_BLOCKS_AT_ONCE 16 /* at most so many are looked up */

#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, V8_BLOCKS);
	__type(key, __u32);
	__type(value, struct v8_block);
} v8_blocks SEC(".maps");

ENV_INLINE struct v8_block *v8_block_at(__u64 identity)
{
	__u32 i = identity % V8_BLOCKS;

	return bpf_map_lookup_elem(&v8_blocks, &i);
}
#else
ENV_INLINE struct v8_block *v8_block_at(__u64 identity)
{
	static struct v8_block blocks[V8_BLOCKS];

	return &blocks[identity % V8_BLOCKS];
}
#endif

#endif
