/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Virtual threads that are about to pause or to resume, so that frames are on the stack, in the
 * heap (hotspot_heap.h), or in both (continuationFreezeThaw.cpp).
 *
 * A thread pauses in Continuation.doYield, or where a monitor makes it wait (JDK 24). Native code
 * copies its frames into the newest chunk, or into a new one, and then the chunk begins with the
 * copies. Until the stub or wrapper that called this code returns, the frames are still on the
 * stack, and the oldest of them returns to the barrier. So the walk takes them from the stack. At
 * the barrier it leaves out as many frames of the chunk, if the chunk begins with the copies. The
 * youngest frame tells: only one that pauses returns to where doYield was called, or is that of a
 * stub or of a native method, or is interpreted at a bytecode that calls nothing. Then doYield sets
 * RSP to the ContinuationEntry and returns from there.
 *
 * A thread resumes in a stub. Either Continuation.enterSpecial calls it, whose frame contains the
 * entry, or it is the barrier. Native code tells how much room the frames need (prepare_thaw). The
 * stub keeps that in RBX, and lowers RSP by it. Then native code removes the frames from the chunk,
 * copies them below the entry, and tells where they begin. All that time nothing on the stack leads
 * to the entry. So the walk computes where it is, from RSP and RBX.
 *
 * If enterSpecial called the stub, the walk continues above the entry: no frame of the thread runs
 * yet. Otherwise the method that the barrier returns to is the youngest in the heap. A chunk keeps
 * the frames that were removed from it, so the walk begins with them. The room tells where they
 * are, but only in a chunk without interpreted frames. In others they are not known.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_PAUSE_H
#define BPF_HOTSPOT_HOTSPOT_PAUSE_H

#include "bpf/hotspot/hotspot_heap.h"

/* Offset in a ContinuationEntry: the Continuation, or its parent and then the Continuation. */
#define HOTSPOT_CONT 8
#define HOTSPOT_YIELD_WORDS 2 /* doYield's frame; no other native method has such a small one */
/* Bytes that the barrier pushes around its calls: a method's result, in RAX or in XMM0. It then
 * aligns RSP. */
#define HOTSPOT_SAVED 24
/* Bytes of the room besides the frames: the return address and RBP of the youngest one, and a word
 * for the alignment at each end (thaw_size). */
#define HOTSPOT_ROOM 32
/* The bytecodes that call methods: the first one, and how many there are. */
#define HOTSPOT_INVOKES 0xb6
#define HOTSPOT_INVOKES_COUNT 5
/* Of the name of the stubs: where this part is, and the part, "continua". */
#define HOTSPOT_PAUSES_AT 14
#define HOTSPOT_PAUSES 0x61756e69746e6f63ull

/* Flag of a result of hotspot_thaws(): the stub is the barrier. */
#define HOTSPOT_AT_BARRIER 1

enum hotspot_frozen {
	HOTSPOT_THAWED = 0,
	HOTSPOT_FROZEN,	  /* the chunk begins with copies of the frames on the stack */
	HOTSPOT_FREEZING, /* the caller of these frames is not known right now */
};

/* Result of hotspot_pauses() besides those of hotspot_frame(): the walk enters the heap. */
#define HOTSPOT_ENTERS_HEAP 0x100

/* Whether a method's code has a call that returns to `back`. */
ENV_FUNCTION __u32 hotspot_has_called(HOTSPOT_PARAMETER __u64 back)
{
	HOTSPOT_FIND(w, p);
	const __u32 kind = hotspot_find(HOTSPOT_ARGUMENT(w, p) back - 1);

	return kind == HOTSPOT_INTERPRETER || (kind == HOTSPOT_NMETHOD && owner_called(back));
}

/* Returns the Continuation of a frame that contains a ContinuationEntry; 0: it does not. */
ENV_FUNCTION __u64 hotspot_entered(HOTSPOT_PARAMETER __u64 entry)
{
	HOTSPOT_FIND(w, p);
	__u64 back, thread;

	if (entry & 7 || !walk_read(w, entry + p->config.cont_entry_bytes + 8, &back) ||
	    !hotspot_is_code(p, back))
		return 0;
	/* As hotspot_has_called(), because a chain of calls is too deep otherwise. */
	const __u32 kind = hotspot_find(HOTSPOT_ARGUMENT(w, p) back - 1);

	if (kind != HOTSPOT_INTERPRETER && (kind != HOTSPOT_NMETHOD || !owner_called(back)))
		return 0;
	for (int i = 0; i < 2; i++, entry += 8) {
		if (walk_read(w, entry + HOTSPOT_CONT, &thread) && thread &&
		    hotspot_class(HOTSPOT_ARGUMENT(w, p) thread))
			return thread;
	}
	return 0;
}

/* Finds the ContinuationEntry above the arguments of the frame that returns to the barrier. Returns
 * 0 if there is none. */
ENV_INLINE __u64 hotspot_entry_above(struct walk *w, struct hotspot_walk *p, __u64 at)
{
	for (int i = 0; i < HOTSPOT_ARGUMENTS; i++, at += 8) {
		if (hotspot_entered(HOTSPOT_ARGUMENT(w, p) at))
			return at;
	}
	return 0;
}

/* Whether the stub that is named at `name` resumes virtual threads. */
ENV_INLINE bool hotspot_resumes(const struct hotspot_walk *p, __u64 name)
{
	__u64 text;

	return runtime_fetch(&p->copies, &text, 8, name + HOTSPOT_PAUSES_AT) &&
	       text == HOTSPOT_PAUSES;
}

/* Returns the end of the frame of the stub, if it is the leaf and the frames are already on the
 * stack. They begin at RBX, or at RAX. 0: they are not. */
ENV_FUNCTION __u64 hotspot_thawed(HOTSPOT_PARAMETER __u64 sp)
{
	HOTSPOT_FIND(w, p);
	for (__u32 i = 0; w->exact && i < 2; i++) {
		__u64 at = 0, back;

		if (walk_leaf_register(w, i ? 0 : UNWIND_REG_RBX, &at) && at - sp < HOTSPOT_NEAR &&
		    !(at & 15) && walk_read(w, at - 8, &back) && hotspot_is_code(p, back))
			return at;
	}
	return 0;
}

/* Returns the ContinuationEntry of the thread that the stub resumes, with HOTSPOT_AT_BARRIER; 0: it
 * is not known. number[0] is then the room for its frames, or 0 if there is none yet. */
ENV_INLINE __u64 hotspot_thaws(struct walk *w, struct hotspot_walk *p, __u64 sp)
{
	__u64 room = 0, entry, back;
	bool at_barrier;

	if (!walk_register(w, UNWIND_REG_RBX, false, &room) || room & 7 || room > HOTSPOT_NEAR)
		room = 0;
	/* Before there is room, RBX is any number. Words in the room could look like an entry. */
	for (__u32 i = 0; i < 4; i++) {
		entry = (sp + (i & 1 ? HOTSPOT_SAVED : 0) + 15) & ~15ull;
		if (!(i & 2))
			entry += (room + 15) & ~15ull;
		if (!hotspot_entered(HOTSPOT_ARGUMENT(w, p) entry))
			continue;
		p->number[0] = i & 2 ? 0 : room;
		at_barrier = i & 1;
		/* Before and after the calls, the word below the entry tells: it is a return
		 * address in enterSpecial or in the stub, or it is the barrier or a result. */
		if (w->exact)
			at_barrier = !walk_read(w, entry - 8, &back) || !hotspot_is_code(p, back) ||
				     hotspot_is_barrier(p, back);
		return entry | (at_barrier ? HOTSPOT_AT_BARRIER : 0);
	}
	return 0;
}

/* Whether the frames that the barrier resumes begin at `from`, below where the chunk begins now. */
ENV_INLINE bool hotspot_thaws_from(struct walk *w, struct hotspot_walk *p, __u64 from, __u64 sp)
{
	const __u64 end = w->heap_end;
	__u64 back;

	if (from > sp || !walk_read(w, from - 8, &back) || !hotspot_is_code(p, back) ||
	    hotspot_find(HOTSPOT_ARGUMENT(w, p) back - 1) != HOTSPOT_NMETHOD)
		return false;
	/* If the chunk is not empty, only one frame was removed. */
	return sp >= end || from + (__u32)hotspot_word(p, p->config.blob_frame) * 8ull == sp;
}

/* Tells whether a chunk begins with copies of the frames on the stack. sp: its youngest frame. */
ENV_INLINE enum hotspot_frozen hotspot_is_frozen(struct walk *w, struct hotspot_walk *p, __u64 sp)
{
	__u64 fp, back, at;
	__u8 code = 0;

	if (!walk_read(w, sp - 8, &back))
		return HOTSPOT_THAWED;
	if (back == w->heap_pause)
		return HOTSPOT_FROZEN;
	switch (hotspot_find(HOTSPOT_ARGUMENT(w, p) back - 1)) {
	case HOTSPOT_STUB:
		/* The copies end where the older frames begin. First the last copy still returns to
		 * the barrier. */
		return hotspot_is_barrier(p, back) ? HOTSPOT_FREEZING : HOTSPOT_FROZEN;
	case HOTSPOT_NATIVE:
		return HOTSPOT_FROZEN;
	case HOTSPOT_INTERPRETER:
		if (walk_read(w, sp - 16, &fp) &&
		    walk_read(w, hotspot_relative(sp - 16, fp) - p->config.frame_bcp * 8ull, &at) &&
		    at == w->heap_pause &&
		    (!runtime_read_bytes(&code, 1, at) ||
		     (__u8)(code - HOTSPOT_INVOKES) >= HOTSPOT_INVOKES_COUNT))
			return HOTSPOT_FROZEN;
	}
	return HOTSPOT_THAWED;
}

/* Tells where the walk enters the newest chunk, in w->heap_from and w->heap_skip. room: the room
 * that the barrier has made for the frames, or 0. Returns 0 if this is not known. */
ENV_FUNCTION __u32 hotspot_enters_chunk(HOTSPOT_PARAMETER __u64 chunk, __u64 room)
{
	HOTSPOT_FIND(w, p);
	enum hotspot_frozen frozen = HOTSPOT_THAWED;

	w->heap_from = 0;
	/* If it is none, hotspot_into_chunk() ends the walk. */
	if (!hotspot_chunk(HOTSPOT_ARGUMENT(w, p) chunk))
		return 1;
	const __u64 sp = p->number[0], from = p->number[1] - room + HOTSPOT_ROOM;

	if (room && from != sp) {
		if (!hotspot_thaws_from(w, p, from, sp))
			return 0;
		w->heap_from = from;
	} else if (!room && sp < w->heap_end) {
		frozen = hotspot_is_frozen(w, p, sp);
	}
	/* Each frame on the stack was counted, and so was the barrier. */
	w->heap_skip = frozen == HOTSPOT_FROZEN ? w->heap_above : 0;
	w->heap_count = w->count;
	w->heap_room = w->room;
	return frozen != HOTSPOT_FREEZING;
}

/* Counts the frame that is walked next. After the frames that were seen on the stack, removes what
 * they emitted. */
ENV_INLINE void hotspot_count_frame(struct walk *w)
{
	if (!w->heap_end)
		w->heap_above++;
	if (w->heap_skip && --w->heap_skip == 0) {
		w->count = w->heap_count;
		w->room = w->heap_room;
	}
}

#endif
