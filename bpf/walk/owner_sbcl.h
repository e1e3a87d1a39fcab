/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Decides whose RBP SBCL's code has (x86-64, seen in SBCL 2.2.9). Its functions have a frame of
 * their own, but RBP may also be the caller's, or already the callee's.
 *
 * The caller of a Lisp function sets up the callee's frame before the call:
 *
 *     mov [X], rbp; mov rbp, X; [mov ecx, COUNT or eax, NAME]; call F
 *
 * The callee begins with `pop [rbp+8]`. This moves the return address into its frame, where the
 * psABI also has it. It ends with `mov rsp, rbp; clc; pop rbp; ret`. So RBP is the function's own
 * from the end of its first instruction up to its `ret`, except in these places:
 *
 * - After `mov rbp, X`, RBP is the callee's, whose frame has no return address yet.
 * - At `pop [rbp+8]`, and in a trampoline that jumps to a function, RBP is the callee's. The
 *   return address is on top of the stack.
 * - In an assembly routine RBP is the caller's. The return address is on top of the stack or a few
 *   words above.
 * - A function that returns more than three values loads the caller's RBP, and then pushes the
 *   return address from [rbx-8].
 *
 * Frames contain words of older calls, so a word next to RSP that looks like a return address
 * proves nothing. But assembly routines are short, and code calls them directly or through a word
 * in memory. A routine returns to a word only if the call before it leads to just below pc.
 * Otherwise the function has its own frame.
 *
 * The pair of instructions before a call identifies SBCL's code: no other compiler is known to emit
 * it.
 *
 * The functions are global, for the reason given in search.h.
 */
#ifndef BPF_WALK_OWNER_SBCL_H
#define BPF_WALK_OWNER_SBCL_H

#include "bpf/walk/env.h"
#include "bpf/walk/owner.h"

/* Bytes before an address in which the beginning of a call is searched. */
#define OWNER_SBCL_BACK 48
#define OWNER_SBCL_ROUTINE 512 /* bytes of an assembly routine, including one that it jumps to */
#define OWNER_SBCL_WORDS 4     /* words of stack searched for its return address */
#define OWNER_SBCL_POP 0x08458full /* pop [rbp+8] */

/* Results of owner_sbcl_site() and owner_sbcl(). */
enum owner_sbcl {
	OWNER_SBCL_NOT,	   /* not SBCL's code, or not known to be */
	OWNER_SBCL_OWN,	   /* RBP is the frame's own */
	OWNER_SBCL_OWN_IN, /* likewise, in an assembly routine, which may have been called by
			    * another one */
	OWNER_SBCL_AHEAD,  /* RBP is already the callee's, before the call */
	/* The return address lies below RBX's target, and RBP is the caller's. */
	OWNER_SBCL_AT_RBX,
	OWNER_SBCL_UNSURE,
	/* Any other value is the address that holds the return address, a multiple of 8, plus
	 * this: */
	OWNER_SBCL_CALLEES = 1, /* RBP is the callee's frame: it points at the caller's RBP */
};

/* Returns the end of the last `mov [X], R; mov rbp, X` among the bytes before `address`, or 0. */
ENV_FUNCTION __u64 owner_sbcl_pair(__u64 address)
{
	__u64 code[OWNER_SBCL_BACK / 8], former = 0, last = 0, at = 0;

	if (env_read_user(code, sizeof(code), address - sizeof(code)))
		return 0;
	for (__u64 i = 0; i < OWNER_SBCL_BACK / 8; i++) {
		__u64 word = code[i], x = word & BYTES_ALL(7);
		__u64 three = BYTES_BEFORE(word, former, 3), four = BYTES_BEFORE(word, former, 4),
		      five = BYTES_BEFORE(word, former, 5), six = BYTES_BEFORE(word, former, 6);
		/* mov rbp, X: 8B, then a byte with the register's lower bits. */
		__u64 mov = bytes_zero(
			((BYTES_BEFORE(word, former, 2) & BYTES_ALL(0xfe)) ^ BYTES_ALL(0x48)) |
			(BYTES_BEFORE(word, former, 1) ^ BYTES_ALL(0x8b)) |
			((word & BYTES_ALL(0xf8)) ^ BYTES_ALL(0xe8)));
		/* mov [X], R: needs one more byte if X is RSP or R12. */
		__u64 store = bytes_zero(((five & BYTES_ALL(0xf8)) ^ BYTES_ALL(0x48)) |
					 (four ^ BYTES_ALL(0x89)) |
					 ((three & BYTES_ALL(0xc7)) ^ x));
		__u64 longer = bytes_zero(((six & BYTES_ALL(0xf8)) ^ BYTES_ALL(0x48)) |
					  (five ^ BYTES_ALL(0x89)) |
					  ((four & BYTES_ALL(0xc7)) ^ BYTES_ALL(0x04)) |
					  (three ^ BYTES_ALL(0x24)) | (x ^ BYTES_ALL(4)));
		__u64 both = mov & (store | longer), here = -BYTES_ANY(both);

		last = (last & ~here) | (both & here);
		at = (at & ~here) | (i * 8 & here);
		former = word;
	}
	return last ? address - sizeof(code) + at + bytes_last(last) + 1 : 0;
}

/* Returns the length of the call at the beginning of the bytes, or 0. */
ENV_INLINE __u64 owner_sbcl_call(__u64 bytes)
{
	return (bytes & 0xff) == 0xe8		? 5 /* direct */
	       : (bytes & 0xf8ff) == 0xd0ff	? 2 /* a register */
	       : (bytes & 0xffffff) == 0xfd50ff ? 3 /* [rax-3], the function of a closure */
	       : (bytes & 0xffffff) == 0x2514ff ? 7 /* [a fixed address] */
						: 0;
}

/*
 * Tells on which side of a call `address` is, in the caller of a Lisp function. Returns
 *
 * - OWNER_SBCL_OWN: after the call
 * - OWNER_SBCL_AHEAD: before it, and RBP is the callee's
 * - OWNER_SBCL_UNSURE: unknown code lies between
 * - OWNER_SBCL_NOT: elsewhere
 */
ENV_FUNCTION __u32 owner_sbcl_site(__u64 address)
{
	__u64 end = owner_sbcl_pair(address), left = address - end, bytes[2], n;

	if (!end || env_read_user(bytes, sizeof(bytes), end))
		return OWNER_SBCL_NOT;
	if (left == 0)
		return OWNER_SBCL_AHEAD;
	/* mov of a constant to eax or ecx */
	if ((bytes[0] & 0xfe) == 0xb8) {
		if (left == 5)
			return OWNER_SBCL_AHEAD;
		n = 5 + owner_sbcl_call(bytes[0] >> 40 | bytes[1] << 24);
		return n == 5 || left < n ? OWNER_SBCL_UNSURE
		       : left == n	  ? OWNER_SBCL_OWN
					  : OWNER_SBCL_NOT;
	}
	/* lea ebx, [rax-11]; test bl, 15; je or jne over the call for symbols */
	if ((bytes[0] & 0xffffffffffff) == 0x0fc3f6f5588d) {
		n = 8 + owner_sbcl_call(bytes[1]);
		if (n == 8)
			return OWNER_SBCL_UNSURE;
		if (left < n)
			return OWNER_SBCL_AHEAD;
		/* The jump skips to the other call, of [rax-3]. */
		return left == n || left == n + 5 ? OWNER_SBCL_OWN
		       : left == n + 2		  ? OWNER_SBCL_AHEAD
						  : OWNER_SBCL_NOT;
	}
	n = owner_sbcl_call(bytes[0]);
	return n == 0 || left < n ? OWNER_SBCL_UNSURE : left == n ? OWNER_SBCL_OWN : OWNER_SBCL_NOT;
}

/* Returns the target of the call that ends at `address`: a direct call, or one through a word at a
 * fixed address or near the call. 0: unknown. */
ENV_FUNCTION __u64 owner_sbcl_target(__u64 address)
{
	__u64 code, at, target;

	if (address < 4096 || env_read_user(&code, sizeof(code), address - 8))
		return 0;
	__u64 number = (__u64)(__s64)(__s32)(code >> 32);

	if ((code >> 24 & 0xff) == 0xe8)
		return address + number;
	if ((code >> 8 & 0xffffff) == 0x2514ff)
		at = number;
	else if ((code >> 16 & 0xffff) == 0x15ff)
		at = address + number;
	else
		return 0;
	return env_read_user(&target, sizeof(target), at) ? 0 : target;
}

/* Whether a function begins at the address, with `pop [rbp+8]`. */
ENV_INLINE bool owner_sbcl_begins(__u64 address)
{
	__u64 code;

	return address && env_read_user(&code, sizeof(code), address) == 0 &&
	       (code & 0xffffff) == OWNER_SBCL_POP;
}

/* Whether a Lisp function returns to the address. */
ENV_FUNCTION __u32 owner_sbcl_returns(__u64 address)
{
	return address >= 4096 && (owner_sbcl_site(address) == OWNER_SBCL_OWN ||
				   /* a call from one part of a function to another */
				   owner_sbcl_begins(owner_sbcl_target(address)));
}

/* Returns the offset of pc in the assembly routine that the call before `address` leads to, or
 * OWNER_SBCL_ROUTINE if pc is not in it. */
ENV_FUNCTION __u64 owner_sbcl_inside(__u64 address, __u64 pc)
{
	__u64 target = owner_sbcl_target(address);

	if (!target || pc - target >= OWNER_SBCL_ROUTINE || owner_sbcl_begins(target))
		return OWNER_SBCL_ROUTINE;
	return pc - target;
}

/* Decides for a leaf, by the bytes at pc and before it. */
ENV_FUNCTION __u64 owner_sbcl_leaf(__u64 pc, __u64 sp)
{
	__u64 code[2], word, top;
	__u32 site;

	if (env_read_user(code, sizeof(code), pc) || env_read_user(&word, sizeof(word), pc - 8) ||
	    env_read_user(&top, sizeof(top), sp))
		return OWNER_SBCL_NOT;
	if ((code[0] & 0xffffff) == OWNER_SBCL_POP)
		return owner_sbcl_returns(top) ? sp | OWNER_SBCL_CALLEES : OWNER_SBCL_NOT;
	/* mov rbp, [rbp]; push [rbx-8]; ret: returns many values */
	if (word >> 32 == 0x006d8b48)
		return (code[0] & 0xffffffff) == 0xc3f873ff ? OWNER_SBCL_AT_RBX : OWNER_SBCL_UNSURE;
	site = owner_sbcl_site(pc);
	if (site == OWNER_SBCL_AHEAD || site == OWNER_SBCL_UNSURE)
		return site;
	/* jmp [rax-3], possibly after mov rax, [rip+N] or mov rax, [rax+N]; jmp [rip+N] */
	if ((code[0] & 0xffffff) != 0xfd60ff && (code[0] & 0xffff) != 0x25ff &&
	    !((code[0] & 0xffffff) == 0x058b48 &&
	      (code[0] >> 56 | (code[1] & 0xffff) << 8) == 0xfd60ff) &&
	    !((code[0] & 0xffffff) == 0x408b48 && (code[0] >> 32 & 0xffffff) == 0xfd60ff))
		return OWNER_SBCL_NOT;
	return top >= 4096 && owner_sbcl_site(top) == OWNER_SBCL_OWN ? sp | OWNER_SBCL_CALLEES
								     : OWNER_SBCL_NOT;
}

/* Returns the address that holds an assembly routine's return address, or enum owner_sbcl. own: the
 * offset of pc in the routine that owns the frame by RBP. */
ENV_FUNCTION __u64 owner_sbcl_routine(__u64 pc, __u64 sp, __u64 fp, __u64 own)
{
	__u64 words[OWNER_SBCL_WORDS];

	if (env_read_user(words, sizeof(words), sp))
		return OWNER_SBCL_NOT;
	for (__u64 i = 0; i < OWNER_SBCL_WORDS; i++) {
		__u64 at = sp + i * 8, inside;

		if (at >= fp)
			break;
		inside = owner_sbcl_inside(words[i], pc);
		if (inside == OWNER_SBCL_ROUTINE || inside > own)
			continue;
		/* A routine that is called like a function: it calls a symbol's function. */
		if (owner_sbcl_site(words[i]) == OWNER_SBCL_OWN)
			return at | OWNER_SBCL_CALLEES;
		if (inside < own)
			return at;
	}
	return own < OWNER_SBCL_ROUTINE ? OWNER_SBCL_OWN_IN : OWNER_SBCL_NOT;
}

/* Whether RBP leads to a Lisp function's frame, directly or after one frame. That frame belongs to
 * an assembly routine, which may have left it to the function that it jumped to. back: the return
 * address in the first frame. */
ENV_FUNCTION __u32 owner_sbcl_frames(__u64 fp, __u64 back)
{
	return owner_sbcl_returns(back) ||
	       (env_read_user(&fp, sizeof(fp), fp) == 0 &&
		env_read_user(&back, sizeof(back), fp + 8) == 0 && owner_sbcl_returns(back));
}

/* Decides which frame RBP belongs to at pc. Returns enum owner_sbcl, or the address that holds the
 * frame's return address. back: the return address that RBP leads to. */
ENV_FUNCTION __u64 owner_sbcl(__u64 pc, __u64 sp, __u64 fp, __u64 back)
{
	__u64 is, caller = pc & OWNER_CALLER;

	pc &= ~OWNER_CALLER;
	if (sp & 7)
		return OWNER_SBCL_NOT;
	is = caller ? OWNER_SBCL_NOT : owner_sbcl_leaf(pc, sp);
	if (is != OWNER_SBCL_NOT)
		return is;
	if (!owner_sbcl_frames(fp, back))
		return OWNER_SBCL_NOT;
	is = owner_sbcl_routine(pc, sp, fp, owner_sbcl_inside(back, pc));
	return is != OWNER_SBCL_NOT ? is : OWNER_SBCL_OWN;
}

#endif
