/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * HotSpot's walk: it takes over the frames of HotSpot's code (bpf/walk/runtime_walk.h), one by one.
 *
 * The CodeBlob of a frame's code tells how to get to the caller. In the leaf, the frame may be
 * incomplete or partly removed, which the instructions at its pc show. The process may be hostile
 * and the config may be wrong, so the walk is bounded and only reads.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_WALK_H
#define BPF_HOTSPOT_HOTSPOT_WALK_H

#include "bpf/hotspot/hotspot_state.h"
#include "bpf/hotspot/hotspot_code.h"
#include "bpf/hotspot/hotspot_scopes.h"
#include "bpf/hotspot/hotspot_leaf.h"
#include "bpf/hotspot/hotspot_interpreter.h"
#include "bpf/hotspot/hotspot_pause.h"
#include "bpf/hotspot/hotspot_thread.h"

/* HotSpot has only frames that it takes over, so there is nothing to walk here. */
ENV_INLINE bool hotspot_begin(const struct walk *w, struct hotspot_walk *p)
{
	return false;
}

ENV_INLINE int hotspot_step(struct walk *w, struct hotspot_walk *p)
{
	return 1;
}

/* Prepares the state for a frame. The state is only valid within one walk: another runtime may use
 * the same memory before the next one. */
ENV_INLINE bool hotspot_prepare(struct walk *w, struct hotspot_walk *p)
{
	__u64 process = w->sample.pid ^ w->sample.start_ns;

#ifdef __bpf__
	if (p->time_ns == w->sample.time_ns && p->process == process && p->keeps == p->copies.keep)
		return p->heaps;
#endif
	for (__u32 i = 0; i < HOTSPOT_KNOWN; i++)
		p->known[i].method = 0;
	p->time_ns = w->sample.time_ns;
	p->keeps = p->copies.keep;
	p->process = process;
	p->nmethod_name = p->interpreter_name = 0;
	p->chunk_class = 0;
	return hotspot_load(HOTSPOT_ARGUMENT(w, p) p->base + p->config.heaps);
}

/* Moves to the caller of a frame whose return address is below cfa. The stub that a method calls at
 * its beginning (nmethod entry barrier) pushes -1 first. */
ENV_INLINE int hotspot_leave(struct walk *w, __u64 cfa, __u64 fp)
{
	__u64 back;

	if (!walk_read(w, cfa - 8, &back))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	if (back == ~0ull) {
		cfa += 8;
		if (!walk_read(w, cfa - 8, &back))
			return walk_stop(w, WALK_STACK_UNREADABLE);
	}
	return runtime_leave(w, cfa, fp, back);
}

/* Moves to the caller of compiled code, or of a stub whose frames have a size. */
ENV_INLINE int hotspot_sized(struct walk *w, struct hotspot_walk *p, __u64 words, __u32 built)
{
	__u64 cfa = w->sp + words * 8, fp = w->fp;

	if (w->heap_end)
		return hotspot_leave_heap(w, p, cfa, cfa - 16);
	if (built == HOTSPOT_CALLED)
		cfa = w->sp + 8;
	else if (built == HOTSPOT_PUSHED)
		cfa = w->sp + 16;
	else if (built == HOTSPOT_POPPED)
		cfa = w->sp;
	if ((built == HOTSPOT_BUILT || built == HOTSPOT_PUSHED) && !walk_read(w, cfa - 16, &fp))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	return hotspot_leave(w, cfa, fp);
}

/* Returns the pc of a compiled frame. A frame that will be deoptimized returns to another place,
 * and holds the original address. */
ENV_INLINE __u64 hotspot_pc(struct walk *w, struct hotspot_walk *p)
{
	__u64 pc;

	if (w->exact)
		return w->pc;
	if (hotspot_is_deopt(p, w->pc) &&
	    walk_read(w, w->sp + (__u32)hotspot_word(p, p->config.orig_pc), &pc))
		return pc - 1;
	return w->pc - 1;
}

/* Returns enum runtime_code of the code in words[]. */
ENV_INLINE __u32 hotspot_code_kind(const struct hotspot_walk *p, __u32 kind)
{
	const __u32 level = (__u8)hotspot_word(p, p->config.level);

	if (kind == HOTSPOT_NATIVE)
		return RUNTIME_CODE_NATIVE;
	if (!p->config.level || !level || level > HOTSPOT_LEVEL_C2)
		return RUNTIME_CODE_UNKNOWN;
	return level == HOTSPOT_LEVEL_C2 ? RUNTIME_CODE_C2 : RUNTIME_CODE_C1;
}

ENV_INLINE int hotspot_compiled(struct walk *w, struct hotspot_walk *p, __u32 kind)
{
	const struct hotspot_config *c = &p->config;
	__u64 words = (__u32)hotspot_word(p, c->blob_frame), pc = hotspot_pc(w, p);
	const bool yields = kind == HOTSPOT_NATIVE && words == HOTSPOT_YIELD_WORDS;
	__u32 built = HOTSPOT_BUILT;

	if (words > HOTSPOT_FRAME_MAX)
		return RUNTIME_DECLINES;
	/* Calls of method handles have no frame. */
	if (!words)
		built = HOTSPOT_CALLED;
	else if (w->exact)
		built = hotspot_built(HOTSPOT_ARGUMENT(w, p) words);
	runtime_take(w);
	p->code_kind = hotspot_code_kind(p, kind);
	if (kind == HOTSPOT_NMETHOD)
		hotspot_scopes(HOTSPOT_ARGUMENT(w, p) pc - hotspot_code_of(p), !w->exact);
	else
		hotspot_emit(HOTSPOT_ARGUMENT(w, p) hotspot_word(p, c->method), 0);
	if (kind == HOTSPOT_NMETHOD && built == HOTSPOT_BUILT && !w->heap_end &&
	    p->lowered != HOTSPOT_PLACED) {
		__u64 above = hotspot_above(HOTSPOT_ARGUMENT(w, p) w->sp + words * 8 - 8);

		if (!above)
			return walk_stop(w, WALK_CALLER_UNSURE);
		words += above / 8;
	}
	/* The wrapper of a native method looks for an exception after it has removed its frame
	 * (generate_native_wrapper of sharedRuntime_x86_64.cpp). */
	if (kind == HOTSPOT_NATIVE && w->exact && built == HOTSPOT_BUILT &&
	    !hotspot_is_back(HOTSPOT_ARGUMENT(w, p) w->sp + words * 8 - 8) &&
	    hotspot_is_back(HOTSPOT_ARGUMENT(w, p) w->sp))
		built = HOTSPOT_CALLED;
	if (yields && w->exact && built == HOTSPOT_BUILT && w->sp > w->fp && !w->heap_end)
		words += c->cont_entry_bytes / 8;
	int stop = hotspot_sized(w, p, words, built);

	/* The frames that are frozen begin here. */
	if (yields && !w->heap_end) {
		w->heap_pause = w->pc;
		w->heap_above = 0;
	}
	return stop;
}

/* Emits a stub. at: the address of its name. */
ENV_FUNCTION __u32 hotspot_take_stub(HOTSPOT_PARAMETER __u64 at)
{
	HOTSPOT_FIND(w, p);
	__u64 check;

	runtime_take(w);
	if (!runtime_fetch(&p->copies, p->number, sizeof(p->number), at))
		return 0;
	check = hotspot_text_check(p->number);
	runtime_took(w, RUNTIME_FRAME, at, RUNTIME_POSITION_MASK | check << RUNTIME_CHECK_SHIFT);
	return hotspot_copied(HOTSPOT_ARGUMENT(w, p) at, check);
}

/*
 * Handles the barrier, and the stubs that resume a virtual thread. The barrier itself is no frame
 * until it runs. name: the stub's name.
 */
ENV_FUNCTION int hotspot_pauses(HOTSPOT_PARAMETER __u64 name)
{
	HOTSPOT_FIND(w, p);
	const __u64 bytes = p->config.cont_entry_bytes;
	const bool barrier = hotspot_is_barrier(p, w->pc);
	__u64 entry = 0, at, fp, back;

	if (!barrier && !hotspot_resumes(p, name))
		return RUNTIME_DECLINES;
	p->number[0] = 0;
	if (barrier && p->config.fields) {
		entry = hotspot_entry_above(w, p, w->sp) | HOTSPOT_AT_BARRIER;
	} else if (!barrier) {
		at = hotspot_thawed(HOTSPOT_ARGUMENT(w, p) w->sp);
		if (at) {
			if (!walk_read(w, at - 16, &fp) || !walk_read(w, at - 8, &back))
				return walk_stop(w, WALK_STACK_UNREADABLE);
			hotspot_take_stub(HOTSPOT_ARGUMENT(w, p) name);
			return runtime_leave(w, at, fp, back);
		}
		entry = hotspot_thaws(w, p, w->sp);
		/* It has not begun yet, or it is returning. */
		if (!entry && w->exact)
			return RUNTIME_DECLINES;
	}
	const __u64 room = p->number[0];

	if (w->exact || !barrier)
		hotspot_take_stub(HOTSPOT_ARGUMENT(w, p) name);
	at = (entry & ~(__u64)HOTSPOT_AT_BARRIER) + bytes;
	if (at == bytes || !walk_read(w, at, &fp) || !walk_read(w, at + 8, &back))
		return hotspot_heap_ends(w);
	if (!(entry & HOTSPOT_AT_BARRIER))
		return runtime_leave(w, at + 16, fp, back);
	w->heap_pieces += HOTSPOT_BARRIER;
	w->heap_back = at;
	if (w->heap_pieces > HOTSPOT_CHUNKS)
		return hotspot_heap_ends(w);
	/* The caller enters it, because a chain of calls is too deep otherwise. */
	w->heap_parent = hotspot_newest_chunk(w, p,
					      hotspot_entered(HOTSPOT_ARGUMENT(w, p) at - bytes));
	w->heap_from = room;
	/* A barrier means that there is a chunk. */
	return w->heap_parent ? HOTSPOT_ENTERS_HEAP : hotspot_heap_ends(w);
}

/* Enters the heap after hotspot_pauses(). */
ENV_INLINE int hotspot_into_heap(struct walk *w, struct hotspot_walk *p)
{
	const __u64 chunk = w->heap_parent;

	if (!hotspot_enters_chunk(HOTSPOT_ARGUMENT(w, p) chunk, w->heap_from))
		return hotspot_heap_ends(w);
	return hotspot_into_chunk(HOTSPOT_ARGUMENT(w, p) chunk);
}

/* Handles a stub that continues an exception and has no frame. The return address of the frame that
 * was left is at RSP, or 8 bytes above if the stub aligned RSP. name: the stub's name. */
ENV_INLINE int hotspot_bare(struct walk *w, struct hotspot_walk *p, __u64 name)
{
	__u64 cfa = w->sp + 8, back;

	for (int i = 0; i < 2; i++, cfa += 8) {
		if (!walk_read(w, cfa - 8, &back) || !hotspot_is_code(p, back) ||
		    !hotspot_has_called(HOTSPOT_ARGUMENT(w, p) back))
			continue;
		hotspot_take_stub(HOTSPOT_ARGUMENT(w, p) name);
		return runtime_leave(w, cfa, w->fp, back);
	}
	return RUNTIME_DECLINES;
}

/* Handles stubs without a frame size: most have no frame, or one that RBP points to. */
ENV_INLINE int hotspot_stub(struct walk *w, struct hotspot_walk *p, __u32 kind)
{
	__u64 words = (__u32)hotspot_word(p, p->config.blob_frame), cfa = w->fp + 16, fp;
	__u64 name = hotspot_word(p, p->config.blob_name);
	__u32 built = HOTSPOT_BUILT;

	/* C1's stub for the check of a type has none (no_frame_size of c1_Runtime1.hpp). */
	if (words == HOTSPOT_NO_SIZE)
		words = 0;
	if (!words && p->config.cont_entry_bytes) {
		int left = hotspot_pauses(HOTSPOT_ARGUMENT(w, p) name);

		if (left == HOTSPOT_ENTERS_HEAP)
			return hotspot_into_heap(w, p);
		if (left != RUNTIME_DECLINES)
			return left;
	}
	if (w->exact)
		built = hotspot_stub_built(HOTSPOT_ARGUMENT(w, p) words);
	else if (w->pc == p->call_return)
		built = HOTSPOT_BY_RBP;
	if (built == HOTSPOT_BY_RBP && w->pc == p->call_return)
		hotspot_enters_java(w);
	if (built != HOTSPOT_BY_RBP && words > HOTSPOT_FRAME_MAX)
		return RUNTIME_DECLINES;
	if (!w->exact && !words && built != HOTSPOT_BY_RBP) {
		int left = hotspot_bare(w, p, name);

		if (left != RUNTIME_DECLINES)
			return left;
		p->lowered = hotspot_stub_above(HOTSPOT_ARGUMENT(w, p) w->pc);
		if (p->lowered)
			built = HOTSPOT_FOUND;
	}
	if (built == HOTSPOT_FOUND) {
		const __u64 found = p->lowered;

		cfa = w->sp + (found & ~7ull);
		fp = w->fp;
		if (found & 1 && !walk_read(w, cfa - 16, &fp))
			return RUNTIME_DECLINES;
		hotspot_take_stub(HOTSPOT_ARGUMENT(w, p) name);
		return hotspot_leave(w, cfa, fp);
	}
	if (built == HOTSPOT_BUILT &&
	    (!words || (kind == HOTSPOT_DEOPT && w->fp - w->sp <= words * 8)))
		built = HOTSPOT_BY_RBP;
	if (built != HOTSPOT_BY_RBP) {
		hotspot_take_stub(HOTSPOT_ARGUMENT(w, p) name);
		return hotspot_sized(w, p, words, built);
	}
	if (w->fp - w->sp > HOTSPOT_NEAR || w->fp & 7 || !walk_read(w, w->fp, &fp))
		return RUNTIME_DECLINES;
	hotspot_take_stub(HOTSPOT_ARGUMENT(w, p) name);
	return hotspot_leave(w, cfa, fp);
}

/*
 * Handles an adapter, which moves arguments and then jumps. In this order, the return address is
 *
 *  1. at RSP
 *  2. in RAX, while R13 is the caller's RSP; the old word stays until an argument overwrites it
 *  3. at RSP again, or at R13 if an adapter to the interpreter first checks whether the caller can
 *     be changed
 *
 * At other times these places hold old values.
 */
ENV_INLINE int hotspot_adapter(struct walk *w, struct hotspot_walk *p)
{
	const __u64 rax = hotspot_register(HOTSPOT_ARGUMENT(w, p) HOTSPOT_RAX),
		    r13 = hotspot_register(HOTSPOT_ARGUMENT(w, p) HOTSPOT_R13), moved = r13 - w->sp;
	const bool loaded = hotspot_is_code(p, rax), near = moved <= HOTSPOT_ADAPTED && !(r13 & 7);
	__u64 cfa = w->sp + 8, top, back = rax, word = 0;

	if (!w->exact || !walk_read(w, w->sp, &top))
		return RUNTIME_DECLINES;
	const bool stored = hotspot_is_code(p, top);

	if (!loaded && !stored)
		return RUNTIME_DECLINES;
	if (loaded && near && walk_read(w, r13 - 8, &word) && word == rax)
		cfa = r13;
	else if (loaded && near && walk_read(w, r13, &word) && word == rax)
		cfa = r13 + 8;
	else if (loaded && !stored)
		cfa = !near || (walk_read(w, w->sp - 8, &word) && word == rax) ? w->sp : r13;
	/* The adapter lowers RSP by multiples of 16. */
	else if (loaded && near && (top == rax || (moved && !(moved & 15))))
		cfa = r13;
	else
		back = top;
	hotspot_take_stub(HOTSPOT_ARGUMENT(w, p) hotspot_word(p, p->config.blob_name));
	return runtime_leave(w, cfa, w->fp, back);
}

ENV_INLINE int hotspot_kind_of_frame(struct walk *w, struct hotspot_walk *p)
{
	__u32 kind = hotspot_find(HOTSPOT_ARGUMENT(w, p) w->exact ? w->pc : w->pc - 1);

	switch (kind) {
	case HOTSPOT_NMETHOD:
	case HOTSPOT_NATIVE:
		return hotspot_compiled(w, p, kind);
	case HOTSPOT_INTERPRETER:
		return hotspot_interpreted(w, p);
	case HOTSPOT_ADAPTER:
		return hotspot_adapter(w, p);
	case HOTSPOT_STUB:
	case HOTSPOT_DEOPT:
		return hotspot_stub(w, p, kind);
	}
	return RUNTIME_DECLINES;
}

ENV_INLINE int hotspot_frame(struct walk *w, struct hotspot_walk *p)
{
	int next = RUNTIME_DECLINES;

	hotspot_count_frame(w);
	if (hotspot_prepare(w, p))
		next = hotspot_kind_of_frame(w, p);
	/* Only this walk can handle frames in the heap. */
	return next && w->heap_end ? hotspot_heap_ends(w) : next;
}

ENV_INLINE void hotspot_fetch(struct walk *w, struct hotspot_walk *p, __u64 pc, __u64 fp)
{
	__u64 method;

	if (!hotspot_prepare(w, p))
		return;
	__u32 kind = hotspot_find(HOTSPOT_ARGUMENT(w, p) pc);
	const bool called = pc != w->leaf_pc || !w->leaf_exact;

	if (pc == w->leaf_pc)
		hotspot_read_code(HOTSPOT_ARGUMENT(w, p) pc);
	if (kind >= HOTSPOT_STUB)
		runtime_fetch(&p->copies, p->number, sizeof(p->number),
			      hotspot_word(p, p->config.blob_name));
	p->lowered = HOTSPOT_ASKS;
	if (kind == HOTSPOT_NMETHOD)
		hotspot_scopes(HOTSPOT_ARGUMENT(w, p) pc - hotspot_code_of(p), called);
	else if (kind == HOTSPOT_NATIVE)
		hotspot_emit(HOTSPOT_ARGUMENT(w, p) hotspot_word(p, p->config.method), 0);
	else if (kind == HOTSPOT_INTERPRETER && fp - w->regs[UNWIND_REG_RSP] < HOTSPOT_STACK &&
		 !(fp & 7) && runtime_read(fp - HOTSPOT_METHOD, &method))
		hotspot_emit(HOTSPOT_ARGUMENT(w, p) method, 0);
	/* The call itself. */
	if (kind && called && p->lowered != HOTSPOT_PLACED)
		runtime_fetch(&p->copies, p->number, sizeof(p->number), pc - 15);
}

#endif
