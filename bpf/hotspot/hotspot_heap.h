/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Frames of a virtual thread in Java's heap.
 *
 * When a virtual thread pauses, its frames move to the heap, into objects of the class StackChunk
 * (hotspot_pause.h).
 * When it resumes, only the youngest frames return to a carrier's stack. The last of them returns
 * to a stub, the barrier, which would fetch more. So at the barrier the walk continues in the
 * newest chunk, then in its parents, and then on the stack again: above the ContinuationEntry (in
 * the frame of the code that entered the thread) and above its arguments.
 *
 * In a chunk, frames are as on a stack, with one exception: in an interpreter's frame, and where a
 * callee saves the RBP of one, addresses in the frame are relative to the place that holds them, or
 * to RBP.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_HEAP_H
#define BPF_HOTSPOT_HOTSPOT_HEAP_H

#include "bpf/hotspot/hotspot_object.h"

#define HOTSPOT_CHUNKS 32 /* limits: chunks that a walk reads, */
#define HOTSPOT_EMPTY 8	  /* empty ones in a row, */
#define HOTSPOT_BARRIER 8 /* and finding the first chunk of a thread counts as this many */
/* Classes to examine: a virtual thread's Continuation, and its superclasses. */
#define HOTSPOT_THREADS 3
#define HOTSPOT_CHUNK_WORDS (1u << 24) /* words of a chunk, at most */

/* Ends the walk, because the frames in the heap cannot be walked any further. */
ENV_INLINE int hotspot_heap_ends(struct walk *w)
{
	w->heap_end = 0;
	return walk_stop(w, WALK_HEAP_FRAMES);
}

/* Converts a number that counts words from an address. The number may be any word, so the result
 * may be any address. */
ENV_INLINE __u64 hotspot_relative(__u64 from, __u64 words)
{
	return from + words * 8;
}

/* Reads a field of a chunk that has 32 bits. */
ENV_INLINE bool hotspot_chunk_number(struct hotspot_walk *p, __u64 chunk, __u32 field, __u32 *ret)
{
	return p->field[field] && runtime_read_bytes(ret, 4, chunk + p->field[field]);
}

/* Reads a chunk. Returns 0 if it is not one. Otherwise returns 1 and sets w->heap_end,
 * w->heap_parent, and number[] to the address of its youngest frame, and to the end of the chunk.
 * The frame is not below heap_end if the chunk is empty. */
ENV_FUNCTION __u32 hotspot_chunk(HOTSPOT_PARAMETER __u64 chunk)
{
	HOTSPOT_FIND(w, p);
	const __u64 class = hotspot_class(HOTSPOT_ARGUMENT(w, p) chunk);
	__u32 size = 0, sp = 0, bottom = 0, layout = 0;
	__u64 start;

	/* All chunks have one class, so its fields are looked up once: that takes many reads. */
	if (!class || (p->chunk_class && class != p->chunk_class) ||
	    (!p->chunk_class && !hotspot_fields(HOTSPOT_ARGUMENT(w, p) class)) ||
	    !p->field[HOTSPOT_PARENT] ||
	    !runtime_read_bytes(&layout, 4, class + p->config.layout) ||
	    !hotspot_chunk_number(p, chunk, HOTSPOT_SIZE, &size) ||
	    !hotspot_chunk_number(p, chunk, HOTSPOT_SP, &sp))
		return 0;
	p->chunk_class = class;
	if (!hotspot_chunk_number(p, chunk, HOTSPOT_BOTTOM, &bottom)) {
		if (!hotspot_chunk_number(p, chunk, HOTSPOT_ARGSIZE, &bottom) || bottom > size)
			return 0;
		bottom = size - bottom;
	}
	if (size > HOTSPOT_CHUNK_WORDS || bottom > size || sp > size)
		return 0;
	/* The lowest bits are flags. */
	start = chunk + (layout & 0xfff8);
	w->heap_end = start + bottom * 8ull;
	w->heap_parent = hotspot_reference(HOTSPOT_ARGUMENT(w, p) chunk + p->field[HOTSPOT_PARENT]);
	p->number[0] = start + sp * 8ull;
	p->number[1] = start + size * 8ull;
	return w->heap_parent != HOTSPOT_NO_OBJECT;
}

/* Moves to the youngest frame of a chunk or of its parents, or back to the stack. */
ENV_FUNCTION int hotspot_into_chunk(HOTSPOT_PARAMETER __u64 chunk)
{
	HOTSPOT_FIND(w, p);
	__u64 sp, fp, back;

	for (int i = 0; chunk && i < HOTSPOT_EMPTY; i++) {
		if (++w->heap_pieces > HOTSPOT_CHUNKS ||
		    !hotspot_chunk(HOTSPOT_ARGUMENT(w, p) chunk))
			return hotspot_heap_ends(w);
		sp = w->heap_from ? w->heap_from : p->number[0];
		w->heap_from = 0;
		chunk = w->heap_parent;
		if (sp >= w->heap_end)
			continue;
		if (!walk_read(w, sp - 8, &back) || !walk_read(w, sp - 16, &fp) ||
		    !hotspot_is_code(p, back))
			return hotspot_heap_ends(w);
		w->tracked = 0;
		return walk_to_caller(w, sp, hotspot_relative(sp - 16, fp), back);
	}
	if (chunk || !walk_read(w, w->heap_back, &fp) || !walk_read(w, w->heap_back + 8, &back))
		return hotspot_heap_ends(w);
	w->heap_end = 0;
	w->sp = w->heap_back;
	return runtime_leave(w, w->heap_back + 16, fp, back);
}

/* Moves to the caller of a frame in the heap. fp_at: the address that holds the caller's RBP. */
ENV_INLINE int hotspot_leave_heap(struct walk *w, struct hotspot_walk *p, __u64 cfa, __u64 fp_at)
{
	__u64 fp, back;

	/* At the end of a chunk, two words belong to the caller. */
	if (cfa + 16 >= w->heap_end)
		return hotspot_into_chunk(HOTSPOT_ARGUMENT(w, p) w->heap_parent);
	if (cfa <= w->sp || !walk_read(w, fp_at, &fp) || !walk_read(w, fp_at + 8, &back) ||
	    !hotspot_is_code(p, back))
		return hotspot_heap_ends(w);
	return walk_to_caller(w, cfa, hotspot_relative(fp_at, fp), back);
}

/* Like hotspot_leave_heap, for an interpreter's frame. Its locals end where its caller's frame
 * begins. */
ENV_INLINE int hotspot_leave_heap_frame(struct walk *w, struct hotspot_walk *p, __u64 sender,
					__u64 locals)
{
	if (hotspot_relative(w->fp, locals) + 8 >= w->heap_end)
		return hotspot_into_chunk(HOTSPOT_ARGUMENT(w, p) w->heap_parent);
	return hotspot_leave_heap(w, p, hotspot_relative(w->fp, sender), w->fp);
}

/* Returns the newest chunk of a Continuation; 0: there is none, or it is not known. */
ENV_INLINE __u64 hotspot_newest_chunk(struct walk *w, struct hotspot_walk *p, __u64 thread)
{
	__u64 class = hotspot_class(HOTSPOT_ARGUMENT(w, p) thread);

	/* The Continuation of a virtual thread has a subclass; the fields are in its superclass. */
	for (int i = 0; i < HOTSPOT_THREADS && class; i++) {
		if (!hotspot_fields(HOTSPOT_ARGUMENT(w, p) class) || p->field[HOTSPOT_TAIL])
			break;
		if (!runtime_read_bytes(&class, 8, class + p->config.super))
			class = 0;
	}
	if (!class || !p->field[HOTSPOT_TAIL])
		return 0;
	__u64 chunk = hotspot_reference(HOTSPOT_ARGUMENT(w, p) thread + p->field[HOTSPOT_TAIL]);

	return chunk == HOTSPOT_NO_OBJECT ? 0 : chunk;
}

#endif
