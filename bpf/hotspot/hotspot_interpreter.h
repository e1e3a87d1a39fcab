/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Frames of HotSpot's interpreter (hotspot_walk.h).
 *
 * Below RBP such a frame holds the caller's RSP, the method, and the address of the bytecode. That
 * address is only up to date when the frame has called something. In the leaf the address is in
 * R13.
 *
 * At a method's first instructions, R13 is the caller's RSP, RBX the method, and RAX the return
 * address if it is not on the stack. At its last ones, RBX is the caller's RSP and R13 the return
 * address.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_INTERPRETER_H
#define BPF_HOTSPOT_HOTSPOT_INTERPRETER_H

#include "bpf/hotspot/hotspot_heap.h"
#include "bpf/hotspot/hotspot_leaf.h"
#include "bpf/hotspot/hotspot_scopes.h"

#define HOTSPOT_RAX 0 /* registers by DWARF number */
#define HOTSPOT_R13 13
#define HOTSPOT_SENDER 8  /* bytes below RBP: the caller's RSP, */
#define HOTSPOT_METHOD 24 /* and the method */
/* Bytes of code after a return, in which R13 and RBX are still those of the callee. */
#define HOTSPOT_RETURNED 64
#define HOTSPOT_INDICES 65536 /* smaller numbers are indices of bytecode, not addresses */

/* Returns the index of the bytecode at `at` in the method; -1: it is not in this method. */
ENV_FUNCTION __u64 hotspot_index(HOTSPOT_PARAMETER __u64 method, __u64 at)
{
	HOTSPOT_FIND(w, p);
	__u32 i = hotspot_method(HOTSPOT_ARGUMENT(w, p) method);
	const struct hotspot_known *k = &p->known[(i - 1) & (HOTSPOT_KNOWN - 1)];

	if (!i)
		return ~0ull;
	if (at < HOTSPOT_INDICES)
		return at;
	return at - k->code < k->size ? at - k->code : ~0ull;
}

/* Emits the frame, with the method that runs in it. */
ENV_INLINE void hotspot_take(struct walk *w, struct hotspot_walk *p, __u64 method, __u64 index)
{
	runtime_take(w);
	p->code_kind = RUNTIME_CODE_INTERPRETED;
	hotspot_emit(HOTSPOT_ARGUMENT(w, p) method, index);
}

/* Moves to the caller of the frame at RBP. */
ENV_INLINE int hotspot_leave_frame(struct walk *w, struct hotspot_walk *p)
{
	__u64 fp, back, sender, locals;

	if (w->heap_end) {
		if (!walk_read(w, w->fp - HOTSPOT_SENDER, &sender) ||
		    !walk_read(w, w->fp - (p->config.frame_bcp - 1) * 8ull, &locals))
			return hotspot_heap_ends(w);
		return hotspot_leave_heap_frame(w, p, sender, locals);
	}
	if (!walk_read(w, w->fp - HOTSPOT_SENDER, &sender) || !walk_read(w, w->fp, &fp) ||
	    !walk_read(w, w->fp + 8, &back))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	if (sender - (w->fp + 16) > HOTSPOT_NEAR)
		sender = w->fp + 16;
	return runtime_leave(w, sender, fp, back);
}

/* Returns a register of the leaf. */
ENV_FUNCTION __u64 hotspot_register(HOTSPOT_PARAMETER __u64 reg)
{
	HOTSPOT_FIND(w, p);
	__u64 v = 0;

	return walk_leaf_register(w, reg & 15, &v) ? v : 0;
}

/* Handles a method's first instructions: its frame does not exist yet, or RBP already points to it.
 * Finds the caller's RBP and the return address. Returns false if these are other instructions. */
ENV_INLINE bool hotspot_enters(struct walk *w, struct hotspot_walk *p, bool by_rbp, __u64 *ret_fp,
			       __u64 *ret_back)
{
	__u64 back = 0, word;

	*ret_fp = w->fp;
	if (by_rbp) {
		if (!walk_read(w, w->fp, ret_fp) || !walk_read(w, w->fp + 8, &back))
			return false;
	} else if (walk_read(w, w->sp, &back) && !hotspot_is_code(p, back)) {
		word = back;
		back = hotspot_register(HOTSPOT_ARGUMENT(w, p) HOTSPOT_RAX);
		/* RBP was already pushed. */
		if (!hotspot_is_code(p, back) && walk_read(w, w->sp + 8, &back))
			*ret_fp = word;
	}
	*ret_back = back;
	/* If compiled code aligned RSP, its return address is still on the stack. */
	return hotspot_is_code(p, back) && w->pc - back >= HOTSPOT_RETURNED;
}

/* Handles a method's last instructions, after its frame was removed. Returns false if these are
 * other instructions. */
ENV_INLINE bool hotspot_leaves(struct walk *w, struct hotspot_walk *p, __u64 r13, __u64 *ret_cfa,
			       __u64 *ret_back)
{
	__u64 rbx = hotspot_register(HOTSPOT_ARGUMENT(w, p) UNWIND_REG_RBX), back = r13,
	      cfa = w->sp;

	if (!hotspot_is_code(p, r13)) {
		if (!walk_read(w, w->sp, &back) || !hotspot_is_code(p, back))
			return false;
		cfa += 8;
	}
	*ret_cfa = rbx - cfa < HOTSPOT_NEAR ? rbx : cfa;
	*ret_back = back;
	return true;
}

/* Handles the leaf. */
ENV_INLINE int hotspot_interprets(struct walk *w, struct hotspot_walk *p, __u64 method, __u64 at)
{
	__u64 r13 = hotspot_register(HOTSPOT_ARGUMENT(w, p) HOTSPOT_R13),
	      rbx = hotspot_register(HOTSPOT_ARGUMENT(w, p) UNWIND_REG_RBX), index = ~0ull, cfa, fp,
	      back;
	__u64 whole = (p->config.frame_bcp + 1) * 8ull, below = w->fp - w->sp;

	if (method && below >= whole && below < HOTSPOT_NEAR && r13 >= HOTSPOT_INDICES)
		index = hotspot_index(HOTSPOT_ARGUMENT(w, p) method, r13);
	if (index != ~0ull) {
		hotspot_take(w, p, method, index);
		return hotspot_leave_frame(w, p);
	}
	if (below < whole || r13 - w->sp < HOTSPOT_NEAR) {
		cfa = r13;
		if (below >= HOTSPOT_SENDER && below < whole &&
		    !walk_read(w, w->fp - HOTSPOT_SENDER, &cfa))
			cfa = 0;
		back = below < whole ? w->fp + 16 : w->sp + 8;
		if (cfa - back > HOTSPOT_NEAR)
			cfa = back;
		if (hotspot_method(HOTSPOT_ARGUMENT(w, p) rbx) &&
		    hotspot_enters(w, p, below < whole, &fp, &back)) {
			hotspot_take(w, p, rbx, RUNTIME_POSITION_MASK);
			return runtime_leave(w, cfa, fp, back);
		}
	}
	if (hotspot_is_code(p, r13) && hotspot_leaves(w, p, r13, &cfa, &back))
		return runtime_leave(w, cfa, w->fp, back);
	if (method && below >= whole && below < HOTSPOT_NEAR) {
		index = hotspot_index(HOTSPOT_ARGUMENT(w, p) method, at);
		hotspot_take(w, p, method, index == ~0ull ? RUNTIME_POSITION_MASK : index);
		return hotspot_leave_frame(w, p);
	}
	if (hotspot_leaves(w, p, r13, &cfa, &back))
		return runtime_leave(w, cfa, w->fp, back);
	return RUNTIME_DECLINES;
}

ENV_INLINE int hotspot_interpreted(struct walk *w, struct hotspot_walk *p)
{
	__u64 method = 0, at = 0, index;

	/* A frame without a method is not valid. */
	if (w->fp & 7 || w->fp < w->sp || w->fp - w->sp > HOTSPOT_NEAR ||
	    !walk_read(w, w->fp - HOTSPOT_METHOD, &method) ||
	    !walk_read(w, w->fp - p->config.frame_bcp * 8ull, &at) ||
	    !hotspot_method(HOTSPOT_ARGUMENT(w, p) method))
		method = 0;
	/* It may pause while it waits for a monitor. */
	if (method && !w->exact && w->heap_above == 1)
		w->heap_pause = at;
	if (w->exact)
		return hotspot_interprets(w, p, method, at);
	if (!method)
		return RUNTIME_DECLINES;
	index = hotspot_index(HOTSPOT_ARGUMENT(w, p) method, at);
	hotspot_take(w, p, method, index == ~0ull ? RUNTIME_POSITION_MASK : index);
	return hotspot_leave_frame(w, p);
}

#endif
