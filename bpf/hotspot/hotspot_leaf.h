/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Determines how much of its frame HotSpot's code at the leaf has set up (hotspot_walk.h).
 *
 * All compiled code pushes RBP and lowers RSP, or lowers RSP and stores RBP. A blob tells from
 * which offset on the frame is complete. At its end the code raises RSP, pops RBP, checks whether a
 * safepoint is pending, and returns. So the instructions at the pc, and those after it, show the
 * state.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_LEAF_H
#define BPF_HOTSPOT_HOTSPOT_LEAF_H

#include "bpf/hotspot/hotspot_lowered.h"
#include "bpf/hotspot/hotspot_state.h"

enum hotspot_built {
	HOTSPOT_BUILT = 0,
	HOTSPOT_CALLED,	 /* RSP points to the return address, and RBP is the caller's */
	HOTSPOT_PUSHED,	 /* RSP points to the saved RBP of the caller, just below the return
			  * address */
	HOTSPOT_UNSAVED, /* RSP is lowered, and RBP is still the caller's */
	HOTSPOT_BY_RBP,	 /* RBP points to the saved RBP of the caller */
	HOTSPOT_FOUND,	 /* p->lowered is a result of hotspot_stub_above() */
	HOTSPOT_POPPED,	 /* the return address is just below RSP, and RBP is the caller's */
};

/* Reads the code around pc to code[]. */
ENV_FUNCTION __u32 hotspot_read_code(HOTSPOT_PARAMETER __u64 pc)
{
	HOTSPOT_FIND(w, p);
	__u64 from = pc - HOTSPOT_CODE_BEFORE;

	if (p->copies.keep)
		env_keep(from + 64, 8);
	return runtime_fetch(&p->copies, p->code, HOTSPOT_CODE_BYTES, from);
}

/* Returns eight bytes of code, at an offset from the pc. */
ENV_INLINE __u64 hotspot_code_at(const struct hotspot_walk *p, int i)
{
	__u64 v;

	__builtin_memcpy(&v, p->code + HOTSPOT_CODE_BEFORE + i, 8);
	return v;
}

/* Whether the code at the pc belongs to a return, after RBP was popped. */
ENV_INLINE bool hotspot_returns(const struct hotspot_walk *p)
{
	__u64 code = hotspot_code_at(p, 0), next = hotspot_code_at(p, 8);
	__u32 byte = code & 0xff, three = code & 0xffffff;

	return byte == 0xc3 || byte == 0xc2 ||
	       /* cmp rsp, [r15 + ...] */
	       three == 0xa73b49 || three == 0x673b49 ||
	       /* ja ...; ret */
	       ((code & 0xffff) == 0x870f && (code >> 48 & 0xff) == 0xc3) ||
	       /* test [rip + ...], eax; ret */
	       ((code & 0xffff) == 0x0585 && (code >> 48 & 0xff) == 0xc3) ||
	       /* test [r10], eax; ret, and before it 7 bytes that load r10 */
	       (__u32)code == 0xc3028541 || (code >> 56 == 0x41 && (next & 0xffffff) == 0xc30285) ||
	       /* pop rbp; jmp ... */
	       (byte == 0xe9 && p->code[HOTSPOT_CODE_BEFORE - 1] == 0x5d);
}

/* Whether the code from byte i on subtracts a number from RSP. */
ENV_INLINE bool hotspot_lowers(const struct hotspot_walk *p, int i)
{
	__u32 three = hotspot_code_at(p, i) & 0xfffdff;

	return three == (0xec8148 & 0xfffdff); /* sub rsp, imm32; 48 83 ec: imm8 */
}

/* Returns where the code lowers RSP, in bytes from the pc on, if the frame is complete only `left`
 * bytes after the pc. -1: nowhere. A frame of two words only pushes RBP. */
ENV_INLINE int hotspot_lowers_at(const struct hotspot_walk *p, __u64 left, bool pushes)
{
	for (int i = 0; i < HOTSPOT_CODE_BYTES - HOTSPOT_CODE_BEFORE - 8; i++) {
		if ((__u64)i >= left)
			break;
		if (pushes ? p->code[HOTSPOT_CODE_BEFORE + i] == 0x55 : hotspot_lowers(p, i))
			return i;
	}
	return -1;
}

/* Returns the state of the frame of the code at w->pc: enum hotspot_built. words: size of the
 * complete frame. */
ENV_FUNCTION __u32 hotspot_built(HOTSPOT_PARAMETER __u64 words)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	__u64 complete = hotspot_word(p, c->blob_complete), offset = w->pc - hotspot_code_of(p);

	if (!hotspot_read_code(HOTSPOT_ARGUMENT(w, p) w->pc))
		return HOTSPOT_BUILT;
	__u64 code = hotspot_code_at(p, 0);
	__u32 before = p->code[HOTSPOT_CODE_BEFORE - 1];

	if ((code & 0xff) == 0x5d)
		return HOTSPOT_PUSHED;
	if (hotspot_returns(p))
		return HOTSPOT_CALLED;
	complete = c->flags & HOTSPOT_SHORT_FRAME ? (__u64)(__s16)complete : (__u64)(__s32)complete;
	if ((__s64)offset >= (__s64)complete)
		return HOTSPOT_BUILT;
	if (complete - offset > HOTSPOT_CODE_BYTES - HOTSPOT_CODE_BEFORE - 8)
		return HOTSPOT_CALLED;
	int at = hotspot_lowers_at(p, complete - offset, words == 2);
	/* mov rbp, rsp, of which there are two forms */
	bool moves = (code & 0xffffff) == 0xec8b48 || (code & 0xffffff) == 0xe58948;

	if (at < 0)
		/* mov [rsp + ...], rbp */
		return (__u32)code == 0x246c8948 || (__u32)code == 0x24ac8948 ? HOTSPOT_UNSAVED
									      : HOTSPOT_BUILT;
	if (words == 2)
		return HOTSPOT_CALLED;
	return moves || (!at && (before == 0x55 || before == 0xec || before == 0xe5))
		       ? HOTSPOT_PUSHED
		       : HOTSPOT_CALLED;
}

/* Whether a word of the stack is a return address into HotSpot's code, or the -1 that a stub pushes
 * below one. */
ENV_INLINE bool hotspot_back_at(struct walk *w, const struct hotspot_walk *p, __u64 at)
{
	__u64 back;

	return walk_read(w, at, &back) && (hotspot_is_code(p, back) || back == ~0ull);
}

/* Returns where the next instruction of a stub is, in bytes from the pc, if the one at `at` is one
 * that stubs have between the pop of an exception's pc and the jump to its handler; else `at`. It
 * has no branches, since the verifier follows both sides of one. */
ENV_INLINE __u64 hotspot_before_jump(const struct hotspot_walk *p, __u64 at)
{
	const __u64 code = hotspot_code_at(p, at);
	/* mov r8, rax, of which there are two forms */
	const __u64 moves = OWNER_SAME(code & 0xffffff, 0xc08949) |
			    OWNER_SAME(code & 0xffffff, 0xc08b4c);
	/* mov rax, [r15 + ...] and mov rdx, [r15 + ...], with a disp8 or a disp32 */
	const __u64 loads = OWNER_SAME(code & 0xefffff, 0x478b49),
		    loads_far = OWNER_SAME(code & 0xefffff, 0x878b49);
	/* mov qword [r15 + ...], 0 */
	const __u64 clears = OWNER_SAME(code & 0xffffff, 0x47c749),
		    clears_far = OWNER_SAME(code & 0xffffff, 0x87c749);

	at += moves * 3 + loads * 4 + loads_far * 7 + clears * 8 + clears_far * 11;
	ENV_OPAQUE(at);
	return at & 31;
}

/* jmp rax, jmp r8, and so on */
ENV_INLINE bool hotspot_jumps_to_register(__u64 code)
{
	const bool wide = (code & 0xff) == 0x41;

	return (code >> wide * 8 & 0xf8ff) == 0xe0ff;
}

/* Whether the code of a stub is about to jump to the handler of an exception, and has popped the
 * return address to RDX (tailjmpInd of x86_64.ad, generate_exception_blob of runtime_x86_64.cpp).
 * Or it has just been jumped to, and pushes it again. */
ENV_INLINE bool hotspot_popped(struct walk *w, const struct hotspot_walk *p)
{
	__u64 back, at = hotspot_before_jump(p, 0);

	/* This is no loop: Linux 5.10 refuses the one that clang makes of it. */
	at = hotspot_before_jump(p, at);
	at = hotspot_before_jump(p, at);
	at = hotspot_before_jump(p, at);
	/* pop rdx, or the last of these instructions */
	const bool after = p->code[HOTSPOT_CODE_BEFORE - 1] == 0x5a ||
			   !(__u32)hotspot_code_at(p, -4);
	const bool begins = w->pc == hotspot_code_of(p) && (hotspot_code_at(p, 0) & 0xff) == 0x52;

	if (!begins && !((at || after) && hotspot_jumps_to_register(hotspot_code_at(p, at))))
		return false;
	return walk_read(w, w->sp - 8, &back) && hotspot_is_code(p, back);
}

/* Whether the return address at RSP is a copy of the one at the end of a stub's frame: C2's stub
 * that throws an exception again has it as an argument. */
ENV_INLINE bool hotspot_copies_back(struct walk *w, __u64 words)
{
	__u64 back, copy;

	return words && walk_read(w, w->sp, &copy) && walk_read(w, w->sp + words * 8 - 8, &back) &&
	       back == copy;
}

/* Like hotspot_built, for stubs. words is 0 if the frame's size is unknown. */
ENV_FUNCTION __u32 hotspot_stub_built(HOTSPOT_PARAMETER __u64 words)
{
	HOTSPOT_FIND(w, p);
	if (!hotspot_read_code(HOTSPOT_ARGUMENT(w, p) w->pc))
		return HOTSPOT_BUILT;
	__u64 code = hotspot_code_at(p, 0);

	if ((code & 0xff) == 0x5d || (code & 0xffffff) == 0xec8b48 || (code & 0xffffff) == 0xe58948)
		return HOTSPOT_PUSHED;
	if (hotspot_returns(p))
		return HOTSPOT_CALLED;
	if (hotspot_popped(w, p))
		return HOTSPOT_POPPED;
	/* mov [rsp + ...], rbp */
	if (words && (__u32)code == 0x246c8948)
		return HOTSPOT_UNSAVED;
	p->lowered = words ? 0 : hotspot_stub_above(HOTSPOT_ARGUMENT(w, p) w->pc);
	/* pop [rsp]: a copy of the return address was pushed */
	if (words && (__u32)code == 0x24048f48)
		p->lowered = (words * 8 + 8) | 1;
	if (p->lowered)
		return HOTSPOT_FOUND;
	if (hotspot_back_at(w, p, w->sp))
		return hotspot_copies_back(w, words) ? HOTSPOT_BUILT : HOTSPOT_CALLED;
	/* The frame lies between RBP and RSP. */
	const bool has_frame = w->fp - w->sp <= HOTSPOT_NEAR && !(w->fp & 7);

	if (has_frame && hotspot_back_at(w, p, w->fp + 8))
		return HOTSPOT_BY_RBP;
	/* C code also calls stubs: SharedRuntime::frem of JDK 25 does. */
	if (!words && !hotspot_called_by_c(HOTSPOT_ARGUMENT(w, p) w->sp) && has_frame &&
	    hotspot_called_by_c(HOTSPOT_ARGUMENT(w, p) w->fp + 8))
		return HOTSPOT_BY_RBP;
	return words ? HOTSPOT_BUILT : HOTSPOT_CALLED;
}

#endif
