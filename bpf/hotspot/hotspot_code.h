/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Finds the CodeBlob that contains an address in HotSpot's code (hotspot_walk.h). */
#ifndef BPF_HOTSPOT_HOTSPOT_CODE_H
#define BPF_HOTSPOT_HOTSPOT_CODE_H

#include "bpf/hotspot/hotspot_state.h"

#define HOTSPOT_HOPS 32 /* steps through the segment map, at most */
#define HOTSPOT_FREE 0xff

/* Reads the bounds of heap i. `at` leads there by the config's offsets. */
ENV_FUNCTION __u32 hotspot_load_heap(HOTSPOT_PARAMETER __u64 at, __u64 i)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	struct hotspot_heap *h = &p->heap[i & (HOTSPOT_HEAPS - 1)];

	h->shift = 0;
	if (!runtime_fetch(&p->copies, &h->start, 8, at + c->heap_start) ||
	    !runtime_fetch(&p->copies, &h->end, 8, at + c->heap_end) ||
	    !runtime_fetch(&p->copies, &h->map, 8, at + c->heap_map) ||
	    !runtime_fetch(&p->copies, &h->shift, 4, at + c->heap_shift) || h->shift > 16)
		return 0;
	return 1;
}

/* Reads the bounds of all heaps. variable: the address of CodeCache::_heaps. Returns how many heaps
 * there are, or 0. */
ENV_FUNCTION __u32 hotspot_load(HOTSPOT_PARAMETER __u64 variable)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	__u64 at, data = 0, heap;
	__u32 n = 1;

	p->heaps = 0;
	p->call_return = 0;
	if (!runtime_fetch(&p->copies, &at, 8, variable))
		return 0;
	if (c->call_return)
		runtime_fetch(&p->copies, &p->call_return, 8, p->base + c->call_return);
	if (!(c->flags & HOTSPOT_ONE_HEAP) &&
	    (!runtime_fetch(&p->copies, &n, 4, at + c->array_length) ||
	     !runtime_fetch(&p->copies, &data, 8, at + c->array_data)))
		return 0;
	for (__u32 i = 0; i < HOTSPOT_HEAPS; i++) {
		heap = at;
		if (i >= n || (data && !runtime_fetch(&p->copies, &heap, 8, data + i * 8)))
			break;
		if (!hotspot_load_heap(HOTSPOT_ARGUMENT(w, p) heap, i))
			break;
		p->heaps = i + 1;
	}
	return p->heaps;
}

/* Returns enum hotspot_kind of the blob in words[], by its name. */
ENV_INLINE __u32 hotspot_kind(struct hotspot_walk *p)
{
	__u64 at = hotspot_word(p, p->config.blob_name), text = 0;

	if (at == p->nmethod_name)
		return HOTSPOT_NMETHOD;
	if (at == p->interpreter_name)
		return HOTSPOT_INTERPRETER;
	if (!runtime_fetch(&p->copies, &text, 8, at))
		return HOTSPOT_NONE;
	if (text == 0x00646f6874656d6eull) { /* "nmethod" */
		p->nmethod_name = at;
		return HOTSPOT_NMETHOD;
	}
	if (text == 0x6572707265746e49ull) { /* "Interpre" */
		p->interpreter_name = at;
		return HOTSPOT_INTERPRETER;
	}
	switch (text) {
	case 0x6e2065766974616eull: /* "native n" */
		return HOTSPOT_NATIVE;
	case 0x204932432f433249ull: /* "I2C/C2I " */
		return HOTSPOT_ADAPTER;
	case 0x696d6974706f6544ull: /* "Deoptimi" */
	case 0x6e6f6d6d6f636e55ull: /* "Uncommon" */
		return HOTSPOT_DEOPT;
	}
	return HOTSPOT_STUB;
}

/* Returns the map's entry for a segment: how far back it leads; HOTSPOT_FREE: nowhere. */
ENV_INLINE __u32 hotspot_back(struct hotspot_walk *p, __u64 map, __u64 segment)
{
	__u8 back = 0;

	if (!runtime_fetch(&p->copies, &back, 1, map + segment) || back > segment)
		return HOTSPOT_FREE;
	return back;
}

/* Goes from a segment to the first one of its block. The map tells how far back that is, or a part
 * of the way. Returns 1 + its index, or 0. */
ENV_FUNCTION __u64 hotspot_first_segment(HOTSPOT_PARAMETER __u64 map, __u64 segment)
{
	HOTSPOT_FIND(w, p);
	for (__u32 i = 0; i < HOTSPOT_HOPS; i++) {
		__u32 back = hotspot_back(p, map, segment);

		if (!back)
			return segment + 1;
		if (back == HOTSPOT_FREE)
			return 0;
		segment -= back;
	}
	return 0;
}

/* Reads the head of a block to words[]. Returns 0 if it is not readable. */
ENV_FUNCTION __u32 hotspot_read_block(HOTSPOT_PARAMETER __u64 block)
{
	HOTSPOT_FIND(w, p);
	__u64 bytes = p->config.blob_bytes;

	p->block = block;
	ENV_OPAQUE(bytes); /* see at_most in shared.bpf.h */
	if (bytes > HOTSPOT_BLOB_BYTES)
		bytes = HOTSPOT_BLOB_BYTES;
	if (!runtime_fetch(&p->copies, p->words, bytes, p->block))
		return 0;
	hotspot_keep(p, p->block, bytes);
	return 1;
}

/* Finds the blob of the code at pc, and reads its header to words[]. Returns enum hotspot_kind. */
ENV_FUNCTION __u32 hotspot_find(HOTSPOT_PARAMETER __u64 pc)
{
	HOTSPOT_FIND(w, p);
	__u64 segment = 0, start = 0, shift = 0, map = 0;

	for (__u32 i = 0; i < HOTSPOT_HEAPS; i++) {
		const struct hotspot_heap *h = &p->heap[i];

		if (i >= p->heaps || pc - h->start >= h->end - h->start)
			continue;
		start = h->start;
		shift = h->shift & 31;
		map = h->map;
		break;
	}
	if (!map)
		return HOTSPOT_NONE;
	segment = (pc - start) >> shift;
	__u32 back = hotspot_back(p, map, segment);

	if (back == HOTSPOT_FREE)
		return HOTSPOT_NONE;
	segment -= back;
	/* Usually this is the block's first segment. A name that was seen before proves it. */
	if (!hotspot_read_block(HOTSPOT_ARGUMENT(w, p) start + (segment << shift)))
		return HOTSPOT_NONE;
	__u64 name = p->copies.keep ? 0 : hotspot_word(p, p->config.blob_name);

	if (name && name == p->nmethod_name)
		return HOTSPOT_NMETHOD;
	if (name && name == p->interpreter_name)
		return HOTSPOT_INTERPRETER;
	if (back) {
		segment = hotspot_first_segment(HOTSPOT_ARGUMENT(w, p) map, segment);
		if (!segment ||
		    !hotspot_read_block(HOTSPOT_ARGUMENT(w, p) start + ((segment - 1) << shift)))
			return HOTSPOT_NONE;
	}
	return hotspot_kind(p);
}

#endif
