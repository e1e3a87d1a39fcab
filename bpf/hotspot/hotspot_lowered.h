/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Finds the return address of code that has lowered RSP further than its frame (hotspot_walk.h).
 *
 * The size of a frame tells where the return address is when the code calls Java code. In between,
 * code lowers RSP further:
 *
 * - C2's code for a whole method, such as String.compareTo, pushes registers (string_compare of
 *   c2_MacroAssembler_x86.cpp), and so do stubs (stubGenerator_x86_64_sin.cpp).
 * - Slow paths of barriers save the live registers, call C code, and restore them
 *   (SaveLiveRegisters of barrierSetAssembler_x86.cpp).
 * - A conversion passes its number on the stack (d2l_fixup of stubGenerator_x86_64.cpp).
 *
 * None of these calls has a PcDesc. So at the leaf, and at calls without a PcDesc, the walk checks
 * that the word is a return address. It also looks at the code after the call, which raises RSP.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_LOWERED_H
#define BPF_HOTSPOT_HOTSPOT_LOWERED_H

#include "bpf/hotspot/hotspot_code.h"
#include "bpf/hotspot/hotspot_state.h"

#define HOTSPOT_PUSHES 16	  /* words searched above a frame of compiled code, */
#define HOTSPOT_STUB_WORDS 64	  /* and above RSP in a stub */
#define HOTSPOT_SEARCHES 32	  /* such searches in a walk, at most */
#define HOTSPOT_STUB_BYTES 0x8000 /* distance in a stub from its entry, at most */
#define HOTSPOT_JUMP_MAX 0x100000 /* bytes that a slow path jumps back, at most */

/* What p->lowered is beside a result of hotspot_after(). */
#define HOTSPOT_ASKS ~0ull   /* not known: ask hotspot_after() */
#define HOTSPOT_PLACED ~1ull /* the call has a PcDesc, so RSP was not lowered further */
/* Parts of a result of hotspot_after(): how many bytes the code raises RSP, how far back it jumps
 * then, and whether it seems to be no slow path. */
#define HOTSPOT_RAISED(after) ((__u32)(after) & ~7u)
#define HOTSPOT_IN_LINE 1
#define HOTSPOT_JUMPED(after) ((after) >> 32)

#define HOTSPOT_ADD_RSP 0xc48148 /* add rsp, imm32; with imm8 the byte 81 is 83 */
#define HOTSPOT_SUB_RSP 0xec8148

/* Returns eight bytes of text[]. */
ENV_INLINE __u64 hotspot_text_at(const struct hotspot_walk *p, __u64 i)
{
	__u64 v;

	__builtin_memcpy(&v, p->text + i, 8);
	return v;
}

/* Reads code to text[], and returns where its first `add rsp` is; HOTSPOT_TEXT: nowhere. It has no
 * branch in its loop, since the verifier follows both sides of one. */
ENV_FUNCTION __u64 hotspot_raises(HOTSPOT_PARAMETER __u64 from)
{
	HOTSPOT_FIND(w, p);
	__u64 at = 0, open = 1;

	if (!runtime_read_bytes(p->text, sizeof(p->text), from))
		return HOTSPOT_TEXT;
	for (int i = 0; i < HOTSPOT_TEXT; i++) {
		open &= ~OWNER_SAME(hotspot_text_at(p, i) & 0xfffdff, HOTSPOT_ADD_RSP & 0xfffdff);
		at += open;
	}
	return at;
}

/* Whether the code before `end` has an instruction. mask: the bytes of it that `code` has. */
ENV_FUNCTION __u32 hotspot_is_before(HOTSPOT_PARAMETER __u64 end, __u64 code, __u64 mask)
{
	HOTSPOT_FIND(w, p);
	__u64 any = 0;

	if (!runtime_read_bytes(p->text, sizeof(p->text), end - HOTSPOT_TEXT))
		return 0;
	for (int i = 0; i < HOTSPOT_TEXT - 8; i++)
		any |= OWNER_SAME(hotspot_text_at(p, i) & mask, code);
	return any;
}

/* Returns how far the jump in text[] at `at` leads back, from the start of text[]. 0: it leads
 * elsewhere, or there is none. */
ENV_INLINE __u64 hotspot_jumps(const struct hotspot_walk *p, __u64 at)
{
	const __u64 code = hotspot_text_at(p, at);
	__u64 to = 0;

	if ((code & 0xff) == 0xe9)
		to = at + 5 + (__u64)(__s64)(__s32)(code >> 8);
	else if ((code & 0xff) == 0xeb)
		to = at + 2 + (__u64)(__s64)(__s8)(code >> 8);
	return -to < HOTSPOT_JUMP_MAX ? -to : 0;
}

/* Tells what the code at a return address does, if it is a slow path: it may move a result,
 * restores registers, raises RSP, and jumps back to where the method goes on. */
ENV_FUNCTION __u64 hotspot_after(HOTSPOT_PARAMETER __u64 back)
{
	HOTSPOT_FIND(w, p);
	__u64 at = hotspot_raises(HOTSPOT_ARGUMENT(w, p) back);
	const __u64 first = hotspot_text_at(p, 0);
	__u32 byte = first & 0xff, wide = byte == 0x41;

	/* pop REGISTER, which C1 does twice. The end of a method pops RBP. */
	if ((first >> wide * 8 & 0xf8) == 0x58 && byte != 0x5d) {
		const __u32 then = first >> (wide + 1) * 8 & 0xff, two = (then & 0xf8) == 0x58;

		return (8ull << (two && then != 0x5d)) | HOTSPOT_IN_LINE |
		       hotspot_jumps(p, wide ? 2 : 1) << 32;
	}
	if (byte == 0xe9 || byte == 0xeb)
		return hotspot_jumps(p, 0) << 32;
	/* mov REGISTER, REGISTER; jmp */
	if ((first & 0xc0fdf8) == 0xc08948 && hotspot_jumps(p, 3))
		return hotspot_jumps(p, 3) << 32;
	ENV_OPAQUE(at); /* see at_most in shared.bpf.h */
	if (at >= HOTSPOT_TEXT)
		return 0;
	const __u64 add = hotspot_text_at(p, at & (HOTSPOT_TEXT - 1));
	const bool is_short = (add >> 8 & 0xff) == 0x83;
	const __u64 bytes = is_short ? (__u64)(__s64)(__s8)(add >> 24) : (__u32)(add >> 24),
		    jump = is_short ? hotspot_jumps(p, (at & (HOTSPOT_TEXT - 1)) + 4)
				    : hotspot_jumps(p, (at & (HOTSPOT_TEXT - 1)) + 7),
		    whole = is_short ? 0xffffffff : 0xffffffffffffff;

	if (!bytes || bytes & 7 || bytes > HOTSPOT_LOWERED_MAX)
		return 0;
	/* It belongs to this call if RSP was lowered as much before it. Otherwise it may be that of
	 * a slow path after the end of the method. */
	if ((at && !jump) ||
	    !hotspot_is_before(HOTSPOT_ARGUMENT(w, p) back,
			       (add ^ (HOTSPOT_ADD_RSP ^ HOTSPOT_SUB_RSP)) & whole, whole))
		return 0;
	return bytes | jump << 32;
}

/* Whether the frame of the code in words[] will be deoptimized and returns to another place, pc. */
ENV_INLINE bool hotspot_is_deopt(const struct hotspot_walk *p, __u64 pc)
{
	const struct hotspot_config *c = &p->config;
	__u64 blob = hotspot_blob(p), at = hotspot_word(p, c->deopt),
	      at_mh = hotspot_word(p, c->deopt_mh);

	if (c->flags & HOTSPOT_DEOPT_OFFSET) {
		at = blob + (__u32)at;
		at_mh = blob + (__u32)at_mh;
	}
	return pc == at || (c->deopt_mh && pc == at_mh);
}

/* Whether the stub at pc is the barrier: a virtual thread's older frames are in the heap
 * (hotspot_heap.h). */
ENV_INLINE bool hotspot_is_barrier(const struct hotspot_walk *p, __u64 pc)
{
	__u64 code, offset;

	if (!p->config.cont_entry_bytes || !runtime_fetch(&p->copies, &code, 8, pc))
		return false;
	/* mov rsp, [r15 + disp32] */
	offset = code >> 24 & 0xffffffff;
	return (code & 0xffffff) == 0xa78b49 &&
	       (p->config.cont_entry ? offset == p->config.cont_entry : offset < 4096);
}

/* Whether the word at `at` is a return address of Java code. Only Java code, the interpreter and
 * stubs call that. The interpreter pushes return addresses that follow no call, and so does what
 * replaces one: deoptimization, and the barrier of a virtual thread. */
ENV_FUNCTION __u32 hotspot_is_back(HOTSPOT_PARAMETER __u64 at)
{
	HOTSPOT_FIND(w, p);
	__u64 back, told[SAMPLE_TOLD];

	if (!walk_read(w, at, &back) || !hotspot_is_code(p, back))
		return 0;
	if (owner_called(back))
		return 1;
	switch (hotspot_find(HOTSPOT_ARGUMENT(w, p) back - 1)) {
	case HOTSPOT_INTERPRETER:
		return 1;
	case HOTSPOT_STUB:
		return hotspot_is_barrier(p, back);
	case HOTSPOT_NMETHOD:
		/* A copy lacks the code before it. */
		return hotspot_is_deopt(p, back) ||
		       (runtime_was_told(RUNTIME_TOLD(p->block + back - 1 - hotspot_code_of(p)),
					 told) &&
			told[1] == HOTSPOT_PLACED);
	}
	return 0;
}

/* Counts a search of the stack. A hostile process could have one in each frame. */
ENV_INLINE bool hotspot_may_search(struct walk *w)
{
	return w->searches++ < HOTSPOT_SEARCHES;
}

/* Returns 1 + how many bytes above the end of its frame compiled code has its return address; 0:
 * not found. at: the word at the end of its frame. */
ENV_FUNCTION __u64 hotspot_above(HOTSPOT_PARAMETER __u64 at)
{
	HOTSPOT_FIND(w, p);
	__u64 first = p->lowered;

	if (w->exact && hotspot_is_back(HOTSPOT_ARGUMENT(w, p) at))
		return 1;
	if (first == HOTSPOT_ASKS)
		first = hotspot_after(HOTSPOT_ARGUMENT(w, p) w->pc);
	first = HOTSPOT_RAISED(first);
	/* C1 pops one more register after it raised RSP. */
	if (first && hotspot_is_back(HOTSPOT_ARGUMENT(w, p) at + first))
		return 1 + first;
	if (first && hotspot_is_back(HOTSPOT_ARGUMENT(w, p) at + first + 8))
		return 1 + first + 8;
	if (!w->exact && hotspot_is_back(HOTSPOT_ARGUMENT(w, p) at))
		return 1;
	if (!hotspot_may_search(w))
		return 0;
	for (__u64 i = 1; i < HOTSPOT_PUSHES; i++) {
		if (hotspot_is_back(HOTSPOT_ARGUMENT(w, p) at + i * 8))
			return 1 + i * 8;
	}
	return 0;
}

/* Whether the word at `at` is the return address of a call of the stub that contains pc. 2: the
 * stub first pushes RBP. Stubs are called directly, so the target is known. */
ENV_FUNCTION __u32 hotspot_calls_stub(HOTSPOT_PARAMETER __u64 at, __u64 pc)
{
	HOTSPOT_FIND(w, p);
	__u64 back, target;
	__u8 byte = 0;

	if (!walk_read(w, at, &back) || !hotspot_is_code(p, back))
		return 0;
	target = owner_called(back);
	/* Stubs jump to others that are near. */
	if (target <= OWNER_INDIRECT || pc - target + HOTSPOT_STUB_BYTES >= 2 * HOTSPOT_STUB_BYTES)
		return 0;
	return runtime_fetch(&p->copies, &byte, 1, target) && byte == 0x55 ? 2 : 1;
}

/* Whether the word at `at` is the return address of any call. */
ENV_FUNCTION __u32 hotspot_called_by_c(HOTSPOT_PARAMETER __u64 at)
{
	HOTSPOT_FIND(w, p);
	__u64 back;

	return walk_read(w, at, &back) && owner_code(OWNER_MAPS(w->maps, w->map_count), back) &&
	       owner_called(back);
}

/* Finds the return address of a stub by the call before it. Returns the bytes from RSP up to the
 * end of the return address, and 1 if RBP is saved below it; 0: not found. */
ENV_FUNCTION __u64 hotspot_stub_above(HOTSPOT_PARAMETER __u64 pc)
{
	HOTSPOT_FIND(w, p);
	/* RBP points to the frame of most stubs. */
	if (w->fp - w->sp <= HOTSPOT_NEAR && !(w->fp & 7) &&
	    hotspot_calls_stub(HOTSPOT_ARGUMENT(w, p) w->fp + 8, pc))
		return (w->fp + 16 - w->sp) | 1;
	if (!hotspot_may_search(w))
		return 0;
	for (__u64 i = 0; i < HOTSPOT_STUB_WORDS; i++) {
		__u32 how = hotspot_calls_stub(HOTSPOT_ARGUMENT(w, p) w->sp + i * 8, pc);

		if (how)
			return (i * 8 + 8) | (how == 2 && i);
	}
	return 0;
}

#endif
