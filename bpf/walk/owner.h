/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Decides whether RBP belongs to a function that has no rows. Such a function may lack a frame of
 * its own: an assembly routine, a stub, or one in its prologue. Then RBP is its caller's, and
 * following RBP skips the caller. In that case the return address into the caller lies between RSP
 * and RBP's target.
 *
 * RBP counts as the function's own in two cases. Either the instructions before pc set it up, or
 * none of the words next to RSP can be that return address. A few words are enough, since a
 * function without a frame pushes little. All other cases are unsure.
 *
 * Frames contain words of older calls, so each word that leads into code is checked. The code
 * before that address must be a call, to a function without a frame, from a function whose frame
 * has space above the word. Because of old words, only few words are searched, and no frame after
 * one whose RBP was followed. Otherwise nearly every stack of SBCL and Erlang would be unsure.
 * Registers also keep old values, so a register counts only if the instructions before pc pop it.
 *
 * The functions are global, for the reason given in search.h.
 */
#ifndef BPF_WALK_OWNER_H
#define BPF_WALK_OWNER_H

#include "bpf/walk/bytes.h"
#include "bpf/walk/env.h"
#include "bpf/walk/search.h"

#define OWNER_CODE 64	  /* bytes of code to examine, before pc or from a function's start */
#define OWNER_NEAR 65536  /* bytes of a function, at most */
#define OWNER_PROLOGUE 48 /* bytes of code searched for a frame's size */
#define OWNER_SHORT 32	  /* the part of OWNER_CODE nearest to pc */
#define OWNER_BACK 5	  /* how many such parts before a call are examined */
#define OWNER_WORDS 6	  /* words of stack searched for a return address */
#define OWNER_RBP 6	  /* DWARF number */
/* Bits of owner_bare(). They are in 64 bits, since the verifier does not track lower halves. */
#define OWNER_BARE 1ull
#define OWNER_PUSHED (1ull << 32)
#define OWNER_ABOVE 0xff	  /* mask of half of the value: bytes */
#define OWNER_CALLER (1ull << 63) /* flag of pc: it follows a call */
#define OWNER_TOP (1ull << 62)	  /* flag of pc: it is a leaf's, and the word is at RSP */

/* Verdicts that replace a value. */
enum owner_size_verdict { OWNER_UNSIZED = 1 };	 /* of owner_size() */
enum owner_call_verdict { OWNER_INDIRECT = 1 };	 /* of owner_called(): the target is unknown */
enum owner_code_verdict { OWNER_GENERATED = 1 }; /* of owner_code() */

enum owner_rbp {
	/* A frame was set up. No return, leave, pop of RBP, jump or padding follows. */
	OWNER_SET_UP = 1,
	/* The frame still exists, but RBP is the caller's again (V8's calls in place of a
	 * return). */
	OWNER_LEFT,
	/* `sub rsp, 8; mov [rsp], rbp`: RBP may be saved there, below the return address (HotSpot's
	 * stub for exceptions). */
	OWNER_SAVED,
};

/* 1 if two values of less than 64 bits are equal. Without a branch, since the verifier would follow
 * both sides. */
#define OWNER_SAME(a, b) ((((__u64)(a) ^ (b)) - 1) >> 63)
/* 1 if the first four bytes are the start of a function with a frame. Without a branch. */
#define OWNER_BEGINS(bytes) \
	(OWNER_SAME((bytes)&0xffffffff, 0xe5894855) | OWNER_SAME((bytes)&0xffffffff, 0xec8b4855))
/* 1 if these are the first bytes of a function of HotSpot, which touches the stack further down and
 * then pushes RBP. Without a branch. */
#define OWNER_BANGS(bytes) \
	(OWNER_SAME((bytes)&0xffffff, 0x248489) & OWNER_SAME((bytes) >> 48, 0x55ff))
/* Returns a mask of the last bytes of `push rbp; mov rbp, rsp` in both encodings. */
ENV_INLINE __u64 owner_begins(__u64 word, __u64 former)
{
	return bytes_four(word, former, 0xe5894855) | bytes_four(word, former, 0xec8b4855);
}

/* Like owner_begins, and also finds HotSpot's `mov rbp, rsp; add rbp, N` without its first bytes
 * and its last. */
ENV_INLINE __u64 owner_sets_up(__u64 word, __u64 former)
{
	return owner_begins(word, former) | bytes_four(word, former, 0xc58348ec);
}

/* Returns a mask of returns, jumps and padding, after which the code does not continue. */
ENV_INLINE __u64 owner_leaves(__u64 word)
{
	return bytes_equal(word, 0xc3) | bytes_equal(word, 0xe9) | bytes_equal(word, 0xeb) |
	       bytes_equal(word, 0xcc);
}

/* The position and the number of the process's mappings, packed into one word. */
#define OWNER_MAPS(maps, count) ((maps) | (__u64)(count) << 32)

/* Returns 1 + the slot of the executable mapping that covers the address (slot 0: generated code),
 * or 0. */
ENV_FUNCTION __u32 owner_code(__u64 maps, __u64 address)
{
	__u32 first = (__u32)maps, count = maps >> 32;

	if (address >> 47 || !count)
		return 0;
	__u32 i = walk_search_maps(first, count, address);
	const struct slab *s = env_slab(first + i * 8, 8);

	if (!s)
		return 0;
	const struct map_entry *m = ENV_AT(s, first + i * 8, struct map_entry, 8);

	return address >= m->start && address < m->end ? m->slot + 1 : 0;
}

/* Whether the tables have rows for the code at the address. */
ENV_FUNCTION __u32 owner_has_rows(__u64 maps, __u64 address)
{
	__u32 first = (__u32)maps, i = walk_search_maps(first, maps >> 32, address);
	const struct slab *s = env_slab(first + i * 8, 8);

	if (!s)
		return 0;
	const struct map_entry *m = ENV_AT(s, first + i * 8, struct map_entry, 8);
	__u64 offset = address - m->bias;

	if (address < m->start || address >= m->end || !m->slot)
		return 0;
	const struct file_entry *f = env_file(m->slot);

	if (!f || f->state != TABLES_FILE_READY)
		return 0;
	__u32 number = walk_find_rule(f, offset);
	const struct unwind_rule *rule = number & TABLES_RULE_SHORT ? NULL : env_rule(number);

	return number & TABLES_RULE_SHORT ||
	       (rule && rule->cfa != UNWIND_CFA_END && !(rule->flags & UNWIND_DERIVED));
}

/* Whether the code before pc is readable. */
ENV_FUNCTION __u32 owner_sees(__u64 pc)
{
	__u64 code;

	return env_read_user(&code, sizeof(code), pc - 8) == 0;
}

/* Returns the target of the call that ends at pc, or OWNER_INDIRECT; 0 if no call ends there. */
ENV_FUNCTION __u64 owner_called(__u64 pc)
{
	__u64 c, mov, target;

	if (env_read_user(&c, sizeof(c), pc - 8))
		return 0;
	if ((c >> 24 & 0xff) == 0xe8)
		return pc + (__u64)(__s64)(__s32)(c >> 32);
	/* mov r10, TARGET; call r10 (HotSpot), or the same with rax (many others). */
	__u32 rex = c >> 40 == 0xd2ff41;

	if ((rex || c >> 48 == 0xd0ff) && env_read_user(&mov, sizeof(mov), pc - 12 - rex) == 0 &&
	    (mov & 0xffff) == (rex ? 0xba49 : 0xb848) &&
	    env_read_user(&target, sizeof(target), pc - 10 - rex) == 0)
		return target;
	/* FF /2: by register, or by memory at [reg], [sib], disp8, disp8 with sib, disp32, disp32
	 * with sib. */
	__u32 two = c >> 48 & 0xf8ff, three = c >> 40 & 0xf8ff, four = c >> 32 & 0xf8ff,
	      six = c >> 16 & 0xf8ff, seven = c >> 8 & 0xf8ff;

	return two == 0xd0ff || two == 0x10ff || three == 0x10ff || three == 0x50ff ||
	       four == 0x50ff || six == 0x10ff || six == 0x90ff || seven == 0x90ff ||
	       seven == 0x10ff;
}

/* Whether the call before `back` leads to a function with tables. Then the code without rows, whose
 * RBP leads to `back`, does not return there, and following RBP would skip that function. */
ENV_FUNCTION __u32 owner_skips(__u64 maps, __u64 back)
{
	__u64 target = owner_called(back);

	return target > OWNER_INDIRECT && owner_has_rows(maps, target);
}

/* Whether the function at `target` first sets up a frame, before any jump, return or padding. */
ENV_FUNCTION __u32 owner_frames(__u64 target)
{
	__u64 code[OWNER_CODE / 8], frames = 0, former = 0, open = 1;

	if (env_read_user(code, sizeof(code), target))
		return 0;
	for (int i = 0; i < OWNER_CODE / 8; i++) {
		__u64 word = code[i], leaves = owner_leaves(word);
		/* The bytes before the first one that leaves. */
		__u64 before = (leaves & -leaves) - 1;

		frames |= open & BYTES_ANY(owner_sets_up(word, former) & before);
		open &= ~BYTES_ANY(leaves);
		former = word;
	}
	return frames;
}

/* Returns the effect on RBP of the instructions shortly before pc: enum owner_rbp. */
ENV_FUNCTION __u32 owner_set_up(__u64 pc)
{
	__u64 code[OWNER_CODE / 8], former = 0, room = 0;
	__u64 set_up = 0, left = 0, saved = 0;

	if (env_read_user(code, sizeof(code), pc - sizeof(code)))
		return 0;
	for (int i = 0; i < OWNER_CODE / 8; i++) {
		__u64 word = code[i], begun = owner_sets_up(word, former);
		__u64 ended = owner_leaves(word) | bytes_equal(word, 0xc9) |
			      bytes_equal(word, 0x5d);
		/* sub rsp, 8, followed by mov [rsp], rbp */
		__u64 sub = bytes_four(word, former, 0x08ec8348);
		/* mov rbp, [rbp + 0], not followed by a jmp to a register */
		__u64 back = bytes_four(word, former, 0x006d8b48);
		__u64 jumped = bytes_zero((BYTES_BEFORE(word, former, 1) ^ BYTES_ALL(0xff)) |
					  ((word & BYTES_ALL(0xf8)) ^ BYTES_ALL(0xe0)));

		if (i < (OWNER_CODE - OWNER_SHORT) / 8)
			back = 0;
		set_up = (set_up & ~BYTES_ANY(begun | ended)) | BYTES_LATER(begun, ended);
		left = (left & ~BYTES_ANY(back | jumped)) | BYTES_LATER(back, jumped);
		saved |= BYTES_ANY(bytes_four(word, former, 0x242c8948) &
				   BYTES_BEFORE(sub, room, 4));
		room = sub;
		former = word;
	}
	return left ? OWNER_LEFT : set_up ? OWNER_SET_UP : saved ? OWNER_SAVED : 0;
}

/*
 * Finds the return address of code without rows whose RBP is not (or no longer) its own. Following
 * RBP would skip the caller. The bytes around pc decide: a prologue, an epilogue or, for a caller,
 * `add rsp, N; ret` of a trampoline without a frame pointer (CPython's for perf).
 *
 * Returns twice the bytes from RSP up to the return address, plus OWNER_BARE, plus OWNER_PUSHED if
 * the caller's RBP lies below it. Returns 0 if nothing matches: follow the frame pointer.
 */
ENV_FUNCTION __u64 owner_bare(__u64 pc)
{
	const __u64 push = OWNER_BARE | OWNER_PUSHED | 8 << 1;
	__u64 code[2], caller = pc & OWNER_CALLER;

	pc &= ~OWNER_CALLER;
	if (env_read_user(code, sizeof(code), pc - 8))
		return 0;
	__u64 back = code[0], next = code[1];
	__u64 add = (next & 0x87ffffff) == 0xc48348 ? next >> 24 & 0x78 : 0, behind = next >> 32;

	if (caller)
		return add && (behind & 0xff) == 0xc3 ? OWNER_BARE | add << 1 : 0;
	/* `push rbp; mov rbp, rsp`, possibly after an endbr64. */
	if (OWNER_BEGINS(back >> 56 | next << 8))
		return push;
	if (OWNER_SAME(next & 0xffffffff, 0xfa1e0ff3) | OWNER_BEGINS(next))
		return OWNER_BARE;
	/* HotSpot's `mov [rsp - N], eax; push rbp`. */
	if (OWNER_BANGS(back))
		return push;
	if (OWNER_BANGS(next) | OWNER_BANGS(back >> 8 | next << 56))
		return OWNER_BARE;
	/* `pop rbp`, then `ret`, with at most a comparison between: HotSpot's check for a
	 * safepoint. */
	if (OWNER_SAME(next & 0xffff, 0xc35d) | OWNER_SAME(next & 0xffffffff, 0xa73b495d))
		return push;
	/* add rsp, N; pop rbp */
	if (add && (OWNER_SAME(behind & 0xffff, 0xc35d) | OWNER_SAME(behind, 0xa73b495d)))
		return push + (add << 1);
	return OWNER_SAME(next & 0xff, 0xc3) | OWNER_SAME(next & 0xff, 0xc2) |
	       OWNER_SAME(next & 0xffff, 0xc3f3) |
	       OWNER_SAME(back >> 56 | (next & 0xffffff) << 8, 0xa73b495d) |
	       (OWNER_SAME(back & 0xffffffff, 0xa73b495d) & OWNER_SAME(next & 0xffff, 0x870f)) |
	       /* `mov rsp, rbp; pop rbp`, optionally followed by V8's `cmp rcx, N`. */
	       OWNER_SAME(back >> 32, 0x5de58b48) | OWNER_SAME(back >> 32, 0x5dec8948) |
	       OWNER_SAME(back & 0xffffffffffffff, 0xf983485de58b48);
}

/* Returns a bit for each register, by DWARF number, that the code before pc pops. Code that moves
 * its arguments, or leaves its frame by a jump, keeps its return address in such a register. The
 * lower half is for the last OWNER_SHORT bytes, the upper half for those before. */
ENV_FUNCTION __u32 owner_popped(__u64 pc)
{
	/* By encoding number: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi. */
	const __u32 dwarf = 0x54673120;
	__u64 code[OWNER_CODE / 8], former = 0, popped = 0;

	if (env_read_user(code, sizeof(code), pc - sizeof(code)))
		return ~0u;
	for (int i = 0; i < OWNER_CODE / 8; i++) {
		__u64 word = code[i], rex = bytes_equal(BYTES_BEFORE(word, former, 1), 0x41);

		if (i == (OWNER_CODE - OWNER_SHORT) / 8)
			popped <<= 16;
		for (__u32 k = 0; k < 8; k++) {
			__u64 pop = bytes_equal(word, 0x58 + k);

			popped |= BYTES_ANY(pop & ~rex) << (dwarf >> k * 4 & 15);
			popped |= BYTES_ANY(pop & rex) << (8 + k);
		}
		popped |= BYTES_ANY(bytes_equal(word, 0xc9)) << OWNER_RBP; /* leave */
		former = word;
	}
	return popped;
}

/* Whether `word`, the value of a register of the leaf, is the leaf's return address. popped: result
 * of owner_popped(), shifted to this register's bit. */
ENV_FUNCTION __u32 owner_holds(__u64 maps, __u64 word, __u32 popped)
{
	return popped & 0x10001 && owner_code(maps, word) && (popped & 1 || owner_called(word));
}

/* Returns SIZE of the last `push rbp; mov rbp, rsp; sub rsp, SIZE` among the bytes at `from`. 0:
 * they set up no frame; OWNER_UNSIZED: the last frame has no such size. */
ENV_FUNCTION __u64 owner_size(__u64 from)
{
	__u64 code[OWNER_PROLOGUE / 8 + 1], former = 0, began = 0;
	__u64 last = 0, sized = 0, at = 0, sub;

	if (env_read_user(code, sizeof(code), from))
		return 0;
	for (__u64 i = 0; i < OWNER_PROLOGUE / 8 + 1; i++) {
		__u64 word = code[i], begins = owner_begins(word, former);
		/* 83 with one byte, or 81 with four, directly after the start of a frame. */
		__u64 subs = bytes_zero((BYTES_BEFORE(word, former, 2) ^ BYTES_ALL(0x48)) |
					((BYTES_BEFORE(word, former, 1) & BYTES_ALL(0xfd)) ^
					 BYTES_ALL(0x81)) |
					(word ^ BYTES_ALL(0xec))) &
			     BYTES_BEFORE(begins, began, 3);
		__u64 here = -BYTES_ANY(begins | subs);

		last = (last & ~here) | ((begins | subs) & here);
		sized = (sized & ~here) | (BYTES_LATER(subs, begins) & here);
		at = (at & ~here) | (i * 8 & here);
		began = begins;
		former = word;
	}
	if (!last)
		return 0;
	if (!sized)
		return OWNER_UNSIZED;
	if (env_read_user(&sub, sizeof(sub), from + at + bytes_last(last) - 1))
		return 0;
	return (sub & 0xff) == 0x83 ? sub >> 16 & 0x7f : sub >> 16 & 0x7fffffff;
}

/* Returns how many bytes the function before pc needs below its RBP. 0: unknown. */
ENV_INLINE __u64 owner_needs(__u64 pc)
{
	for (__u64 i = 1; i <= OWNER_BACK; i++) {
		__u64 size = owner_size(pc - i * OWNER_PROLOGUE);

		if (size)
			return size == OWNER_UNSIZED ? 0 : size;
	}
	return 0;
}

/* Whether the code at pc belongs to the function at `target`, and runs in its frame. */
ENV_INLINE __u32 owner_runs(__u64 maps, __u64 target, __u64 pc)
{
	return pc - target - OWNER_CODE < OWNER_NEAR &&
	       owner_code(maps, target) == OWNER_GENERATED && owner_frames(target) &&
	       !(owner_popped(pc) & 1u << OWNER_RBP);
}

/* Whether the function at pc may have no frame and return to `word`, an address of code. room:
 * bytes from above the word to RBP's target. */
ENV_FUNCTION __u32 owner_may_return(__u64 maps, __u64 word, __u64 pc, __u64 room)
{
	__u64 target = owner_called(word);

	/* Code may have put a leaf's return address there without a call. A stub of generated code
	 * without a frame may also do so before it calls (HotSpot's for exceptions). */
	if (target == 0)
		return !(pc & OWNER_CALLER) || owner_code(maps, word) == OWNER_GENERATED;
	/* Functions with rows jump to generated code only in place of a call (libjvm, to the stub
	 * that flushes a cache). So the return address cannot come from a call of a function that
	 * already has its frame. */
	if (target != OWNER_INDIRECT &&
	    ((owner_has_rows(maps, target) && !(pc & OWNER_TOP)) ||
	     owner_runs(maps, target, pc & ~(OWNER_CALLER | OWNER_TOP))))
		return 0;
	/* Code with tables may set its frame's size anywhere. */
	return owner_has_rows(maps, word) || owner_needs(word) <= room;
}

/* Whether one of OWNER_WORDS words from `from`, but below `to`, may be the return address of the
 * function at pc, if that function has no frame. */
ENV_FUNCTION __u32 owner_words(__u64 maps, __u64 from, __u64 to, __u64 pc)
{
	__u64 words[OWNER_WORDS], top = pc & OWNER_CALLER ? 0 : OWNER_TOP;

	if (env_read_user(words, sizeof(words), from))
		return 1;
	for (int i = 0; i < OWNER_WORDS; i++) {
		if (from < to && words[i] - from > to - from && owner_code(maps, words[i]) &&
		    owner_may_return(maps, words[i], pc | top, to - from - 8))
			return 1;
		top = 0;
		from += 8;
	}
	return 0;
}

#endif
