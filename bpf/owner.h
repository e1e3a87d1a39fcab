/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Whose RBP code without rows has. Such a function may have no frame of its own: an assembly
 * routine, a stub, one in its prologue. RBP is then its caller's, and following it skips the
 * caller. But the return address into that caller then lies between RSP and where RBP points. So
 * RBP is taken for the function's own where the instructions before pc set it up, or where none of
 * the words next to RSP can be that: what has no frame pushes little. All else is unsure.
 *
 * A frame keeps what older calls left behind, so a word that leads into code is looked at: what is
 * before it must be a call, to a function that has no frame, from one whose frame has room above
 * it. That is why no more words are looked at, and no frame behind one whose RBP was followed:
 * nearly every stack of SBCL and of Erlang would be unsure. Registers keep such words, too: one
 * counts if the instructions before pc pop it.
 *
 * These are global functions, as those of search.h are.
 */
#ifndef PROFPIPE_OWNER_H
#define PROFPIPE_OWNER_H

#include "bpf/env.h"
#include "bpf/search.h"

#define OWNER_CODE 64	  /* bytes of code that are looked at, before pc or of a function */
#define OWNER_NEAR 65536  /* bytes of a function */
#define OWNER_PROLOGUE 48 /* bytes of code that are searched for a frame's size */
#define OWNER_SHORT 32	  /* those of them that are nearest to pc */
#define OWNER_BACK 5	  /* so often, before a call */
#define OWNER_WORDS 6	  /* of the stack that a return address is looked for in */
#define OWNER_RBP 6	  /* DWARF's number */
#define OWNER_UNSIZED 1	  /* of owner_size() */
#define OWNER_INDIRECT 1  /* of owner_called(): where the call leads to is not known */
#define OWNER_BARE 1ull	  /* of owner_bare() */
#define OWNER_PUSHED (1ull << 32)
#define OWNER_ABOVE 0xff	  /* of half of it: bytes */
#define OWNER_GENERATED 1	  /* of owner_code() */
#define OWNER_CALLER (1ull << 63) /* of pc: it is behind a call */
#define OWNER_TOP (1ull << 62)	  /* of pc: a leaf's, and the word is what RSP points at */

enum owner_rbp {
	/* A frame: no return, leave, pop of RBP, jump or padding is behind that. */
	OWNER_SET_UP = 1,
	/* The caller's RBP was given back in a frame that is still there (V8's calls in place of a
	 * return). */
	OWNER_LEFT,
	/* `sub rsp, 8; mov [rsp], rbp`: it lies there, if it still does, below the return address
	 * (HotSpot's stub for exceptions). */
	OWNER_SAVED,
};

/* 1 where two of less than 64 bits are equal, without a branch, both sides of which the verifier
 * would follow. */
#define OWNER_SAME(a, b) ((((__u64)(a) ^ (b)) - 1) >> 63)
/* Likewise: `push rbp; mov rbp, rsp` in both encodings, and of HotSpot's `mov rbp, rsp; add rbp, N`
 * all but the first bytes and the last. */
#define OWNER_SETS_UP(word) \
	(OWNER_SAME(word, 0xe5894855ull) | OWNER_SAME(word, 0xec8b4855ull) | \
	 OWNER_SAME(word, 0xc58348ecull))

/* Likewise: the first four bytes are the beginning of a function that has a frame. */
#define OWNER_BEGINS(bytes) \
	(OWNER_SAME((bytes)&0xffffffff, 0xe5894855) | OWNER_SAME((bytes)&0xffffffff, 0xec8b4855))
/* Likewise, of HotSpot's: it touches the stack further down, and pushes RBP. */
#define OWNER_BANGS(bytes) \
	(OWNER_SAME((bytes)&0xffffff, 0x248489) & OWNER_SAME((bytes) >> 48, 0x55ff))
/* Likewise: a return, a jump, padding. Code goes on elsewhere behind it. */
#define OWNER_LEAVES(b) \
	(OWNER_SAME(b, 0xc3) | OWNER_SAME(b, 0xe9) | OWNER_SAME(b, 0xeb) | OWNER_SAME(b, 0xcc))

/* The process's mappings, where they are and how many, in one number. */
#define OWNER_MAPS(maps, count) ((maps) | (__u64)(count) << 32)

/* The slot of the mapping of code that covers the address (0: generated code) and 1, or 0. */
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

/* Whether tables have rows for the code there. */
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

	if (!f || f->state != FILE_READY)
		return 0;
	__u32 number = walk_find_rule(f, offset);
	const struct unwind_rule *rule = number & RULE_SHORT ? NULL : env_rule(number);

	return number & RULE_SHORT ||
	       (rule && rule->cfa != UNWIND_CFA_END && !(rule->flags & UNWIND_DERIVED));
}

/* Whether the code before pc can be read. */
ENV_FUNCTION __u32 owner_sees(__u64 pc)
{
	__u64 code;

	return env_read_user(&code, sizeof(code), pc - 8) == 0;
}

/* The target of the call that ends at pc, or OWNER_INDIRECT; 0: no call does. */
ENV_FUNCTION __u64 owner_called(__u64 pc)
{
	__u64 c, mov, target;

	if (env_read_user(&c, sizeof(c), pc - 8))
		return 0;
	if ((c >> 24 & 0xff) == 0xe8)
		return pc + (__u64)(__s64)(__s32)(c >> 32);
	/* mov r10, TARGET; call r10: HotSpot's. With rax: many others'. */
	__u32 rex = c >> 40 == 0xd2ff41;

	if ((rex || c >> 48 == 0xd0ff) && env_read_user(&mov, sizeof(mov), pc - 12 - rex) == 0 &&
	    (mov & 0xffff) == (rex ? 0xba49 : 0xb848) &&
	    env_read_user(&target, sizeof(target), pc - 10 - rex) == 0)
		return target;
	/* FF /2: by register, by memory at [reg], [sib], disp8, disp8 with sib, disp32, with sib.
	 */
	__u32 two = c >> 48 & 0xf8ff, three = c >> 40 & 0xf8ff, four = c >> 32 & 0xf8ff,
	      six = c >> 16 & 0xf8ff, seven = c >> 8 & 0xf8ff;

	return two == 0xd0ff || two == 0x10ff || three == 0x10ff || three == 0x50ff ||
	       four == 0x50ff || six == 0x10ff || six == 0x90ff || seven == 0x90ff ||
	       seven == 0x10ff;
}

/* Whether a function with tables was called before `back`: what returns there is not the code
 * without rows whose RBP leads to it, and that function is skipped. */
ENV_FUNCTION __u32 owner_skips(__u64 maps, __u64 back)
{
	__u64 target = owner_called(back);

	return target > OWNER_INDIRECT && owner_has_rows(maps, target);
}

/* Whether the code at `target` begins with setting up a frame: no jump, return or padding stands
 * before that. */
ENV_FUNCTION __u32 owner_frames(__u64 target)
{
	__u8 code[OWNER_CODE];
	__u64 frames = 0, word = 0, open = 1;

	if (env_read_user(code, sizeof(code), target))
		return 0;
	for (int i = 0; i < OWNER_CODE; i++) {
		__u64 b = code[i];

		word = word >> 8 | b << 24;
		open &= ~OWNER_LEAVES(b);
		frames |= open & OWNER_SETS_UP(word);
	}
	return frames;
}

/* What the instructions shortly before pc say of RBP: enum owner_rbp. */
ENV_FUNCTION __u32 owner_set_up(__u64 pc)
{
	__u8 code[OWNER_CODE];
	__u64 set_up = 0, word = 0, left = 0, saved = 0;

	if (env_read_user(code, sizeof(code), pc - sizeof(code)))
		return 0;
	for (int i = 0; i < OWNER_CODE; i++) {
		__u64 b = code[i];

		word = word >> 8 | b << 56;
		set_up &= ~(OWNER_LEAVES(b) | OWNER_SAME(b, 0xc9) | OWNER_SAME(b, 0x5d));
		set_up |= OWNER_SETS_UP(word >> 32);
		saved |= OWNER_SAME(word >> 32, 0x242c8948) &
			 OWNER_SAME(word & 0xffffffff, 0x08ec8348);
		/* mov rbp, [rbp + 0], and no jmp to a register */
		left &= ~OWNER_SAME(word >> 48 & 0xf8ff, 0xe0ff);
		left |= OWNER_SAME(word >> 32, 0x006d8b48) & (i >= OWNER_CODE - OWNER_SHORT);
	}
	return left ? OWNER_LEFT : set_up ? OWNER_SET_UP : saved ? OWNER_SAVED : 0;
}

/*
 * Where code without rows has its return address when its RBP is not its own, or not any more, so
 * that following that would skip the caller. By the bytes around pc, of which there are few: in a
 * prologue, in an epilogue, and of a caller `add rsp, N; ret`, a trampoline without a frame pointer
 * (CPython's for perf). Twice the bytes from RSP up to it, and 1 (OWNER_BARE), and OWNER_PUSHED
 * where the caller's RBP lies below it; 0: none of that, the frame pointer is to be followed.
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
	/* `push rbp; mov rbp, rsp`, which an endbr64 may be before. */
	if (OWNER_BEGINS(back >> 56 | next << 8))
		return push;
	if (OWNER_SAME(next & 0xffffffff, 0xfa1e0ff3) | OWNER_BEGINS(next))
		return OWNER_BARE;
	/* HotSpot's `mov [rsp - N], eax; push rbp`. */
	if (OWNER_BANGS(back))
		return push;
	if (OWNER_BANGS(next) | OWNER_BANGS(back >> 8 | next << 56))
		return OWNER_BARE;
	/* `pop rbp` and before a `ret` at most a comparison, HotSpot's with where it is to stop. */
	if (OWNER_SAME(next & 0xffff, 0xc35d) | OWNER_SAME(next & 0xffffffff, 0xa73b495d))
		return push;
	/* add rsp, N; pop rbp */
	if (add && (OWNER_SAME(behind & 0xffff, 0xc35d) | OWNER_SAME(behind, 0xa73b495d)))
		return push + (add << 1);
	return OWNER_SAME(next & 0xff, 0xc3) | OWNER_SAME(next & 0xff, 0xc2) |
	       OWNER_SAME(next & 0xffff, 0xc3f3) |
	       OWNER_SAME(back >> 56 | (next & 0xffffff) << 8, 0xa73b495d) |
	       (OWNER_SAME(back & 0xffffffff, 0xa73b495d) & OWNER_SAME(next & 0xffff, 0x870f)) |
	       /* `mov rsp, rbp; pop rbp`, and V8's `cmp rcx, N` behind it. */
	       OWNER_SAME(back >> 32, 0x5de58b48) | OWNER_SAME(back >> 32, 0x5dec8948) |
	       OWNER_SAME(back & 0xffffffffffffff, 0xf983485de58b48);
}

/* The registers, by DWARF number, that the code before pc pops, a bit each: what moves its
 * arguments, or leaves its frame by a jump, has its return address there. The lower half is of
 * OWNER_SHORT bytes, the upper one of those before. */
ENV_FUNCTION __u32 owner_popped(__u64 pc)
{
	/* By the encoding's number: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi. */
	const __u32 dwarf = 0x54673120;
	__u8 code[OWNER_CODE];
	__u32 popped = 0, before = 0;

	if (env_read_user(code, sizeof(code), pc - sizeof(code)))
		return ~0u;
	for (int i = 0; i < OWNER_CODE; i++) {
		__u32 b = code[i], low = dwarf >> (b & 7) * 4 & 15, high = 8 + (b & 7);

		if (i == OWNER_CODE - OWNER_SHORT)
			popped <<= 16;
		popped |= (__u32)OWNER_SAME(b & 0xf8, 0x58) << (before == 0x41 ? high : low);
		popped |= (__u32)OWNER_SAME(b, 0xc9) << OWNER_RBP; /* leave */
		before = b;
	}
	return popped;
}

/* Whether a leaf's register has its return address. popped: of owner_popped(), from its bit on. */
ENV_FUNCTION __u32 owner_holds(__u64 maps, __u64 word, __u32 popped)
{
	return popped & 0x10001 && owner_code(maps, word) && (popped & 1 || owner_called(word));
}

/* SIZE of `push rbp; mov rbp, rsp; sub rsp, SIZE` among the bytes at `from`. 0: no frame is set up
 * there; OWNER_UNSIZED: the last that is has no such size. */
ENV_FUNCTION __u64 owner_size(__u64 from)
{
	__u8 code[OWNER_PROLOGUE + 8];
	__u64 word = 0, at = 0, sub;

	if (env_read_user(code, sizeof(code), from))
		return 0;
	for (__u64 i = 0; i < sizeof(code); i++) {
		word = word >> 8 | (__u64)code[i] << 56;
		/* 83 with a byte, or 81 with four. */
		__u64 last = word >> 8 & ~(2ull << 40);
		__u64 same = -(OWNER_SAME(last, 0xec8148e5894855ull) |
			       OWNER_SAME(last, 0xec8148ec8b4855ull));

		at = OWNER_BEGINS(word >> 32) ? OWNER_UNSIZED : at;
		at = (at & ~same) | ((from + i - 1) & same);
	}
	if (at <= OWNER_UNSIZED)
		return at;
	if (env_read_user(&sub, sizeof(sub), at))
		return 0;
	return (sub & 0xff) == 0x83 ? sub >> 16 & 0x7f : sub >> 16 & 0x7fffffff;
}

/* How much the function before pc needs below where its RBP points. 0: not known. */
ENV_INLINE __u64 owner_needs(__u64 pc)
{
	for (__u64 i = 1; i <= OWNER_BACK; i++) {
		__u64 size = owner_size(pc - i * OWNER_PROLOGUE);

		if (size)
			return size == OWNER_UNSIZED ? 0 : size;
	}
	return 0;
}

/* Whether the code at pc is of the function that begins at `target`, and runs in its frame. */
ENV_INLINE __u32 owner_runs(__u64 maps, __u64 target, __u64 pc)
{
	return pc - target - OWNER_CODE < OWNER_NEAR &&
	       owner_code(maps, target) == OWNER_GENERATED && owner_frames(target) &&
	       !(owner_popped(pc) & 1u << OWNER_RBP);
}

/* Whether the function at pc may have no frame, and return to `word`, an address of code. room:
 * from above the word to where RBP points. */
ENV_FUNCTION __u32 owner_may_return(__u64 maps, __u64 word, __u64 pc, __u64 room)
{
	__u64 target = owner_called(word);

	/* A leaf's may have been laid there by other means than a call; and so may, in generated
	 * code, what a stub without a frame lays before it calls (HotSpot's for exceptions). */
	if (target == 0)
		return !(pc & OWNER_CALLER) || owner_code(maps, word) == OWNER_GENERATED;
	/* What tables have rows for jumps to generated code only in place of a call (libjvm, to the
	 * stub that flushes a cache). Nor is it a call of a function that has its frame by now. */
	if (target != OWNER_INDIRECT &&
	    ((owner_has_rows(maps, target) && !(pc & OWNER_TOP)) ||
	     owner_runs(maps, target, pc & ~(OWNER_CALLER | OWNER_TOP))))
		return 0;
	/* Code with tables may have its frame's size anywhere. */
	return owner_has_rows(maps, word) || owner_needs(word) <= room;
}

/* Whether some of OWNER_WORDS words from `from`, but below `to`, is one that the function at pc may
 * return to if it has no frame. */
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
