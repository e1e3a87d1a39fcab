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
 * nearly every stack of SBCL and of Erlang would be unsure.
 *
 * These are global functions, as those of search.h are.
 */
#ifndef PROFPIPE_OWNER_H
#define PROFPIPE_OWNER_H

#include "bpf/env.h"
#include "bpf/search.h"

#define OWNER_CODE 64		  /* bytes of code that are looked at, before pc or of a function */
#define OWNER_NEAR 65536	  /* bytes of a function */
#define OWNER_PROLOGUE 48	  /* bytes of code that are searched for a frame's size */
#define OWNER_BACK 5		  /* so often, before a call */
#define OWNER_WORDS 4		  /* of the stack that a return address is looked for in */
#define OWNER_INDIRECT 1	  /* of owner_called(): where the call leads to is not known */
#define OWNER_GENERATED 1	  /* of owner_code() */
#define OWNER_CALLER (1ull << 63) /* of pc: it is behind a call */

/* 1 where two are equal, without a branch, both sides of which the verifier would follow. */
#define OWNER_SAME(a, b) ((((__u64)(a) ^ (b)) - 1) >> 63)
/* Likewise: `push rbp; mov rbp, rsp` in both encodings. */
#define OWNER_SETS_UP(word) (OWNER_SAME(word, 0xe5894855ull) | OWNER_SAME(word, 0xec8b4855ull))

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

/* The target of the call that ends at pc, or OWNER_INDIRECT; 0: no call does. */
ENV_FUNCTION __u64 owner_called(__u64 pc)
{
	__u64 c, mov, target;

	if (env_read_user(&c, sizeof(c), pc - 8))
		return 0;
	if ((c >> 24 & 0xff) == 0xe8)
		return pc + (__u64)(__s64)(__s32)(c >> 32);
	/* mov r10, TARGET; call r10 */
	if (c >> 40 == 0xd2ff41 && env_read_user(&mov, sizeof(mov), pc - 13) == 0 &&
	    (mov & 0xffff) == 0xba49 && env_read_user(&target, sizeof(target), pc - 11) == 0)
		return target;
	/* FF /2: by register, by memory at [reg], [sib], disp8, disp8 with sib, disp32, with sib.
	 */
	__u32 two = c >> 48 & 0xf8ff, three = c >> 40 & 0xf8ff, four = c >> 32 & 0xf8ff,
	      six = c >> 16 & 0xf8ff, seven = c >> 8 & 0xf8ff;

	return two == 0xd0ff || two == 0x10ff || three == 0x10ff || three == 0x50ff ||
	       four == 0x50ff || six == 0x10ff || six == 0x90ff || seven == 0x90ff ||
	       seven == 0x10ff;
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

/* Whether the instructions shortly before pc set up a frame: no return, leave, pop of RBP, jump or
 * padding stands between. */
ENV_FUNCTION __u32 owner_set_up(__u64 pc)
{
	__u8 code[OWNER_CODE];
	__u64 set_up = 0, word = 0;

	if (env_read_user(code, sizeof(code), pc - sizeof(code)))
		return 0;
	for (int i = 0; i < OWNER_CODE; i++) {
		__u64 b = code[i];

		word = word >> 8 | b << 24;
		set_up &= ~(OWNER_LEAVES(b) | OWNER_SAME(b, 0xc9) | OWNER_SAME(b, 0x5d));
		set_up |= OWNER_SETS_UP(word);
	}
	return set_up;
}

/* SIZE of the last `push rbp; mov rbp, rsp; sub rsp, SIZE` among the bytes at `from`, or 0. */
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

		at = (at & ~same) | ((from + i - 1) & same);
	}
	if (at == 0 || env_read_user(&sub, sizeof(sub), at))
		return 0;
	return (sub & 0xff) == 0x83 ? sub >> 16 & 0x7f : sub >> 16 & 0x7fffffff;
}

/* How much the function before pc needs below where its RBP points. 0: not known. */
ENV_INLINE __u64 owner_needs(__u64 pc)
{
	for (__u64 i = 1; i <= OWNER_BACK; i++) {
		__u64 size = owner_size(pc - i * OWNER_PROLOGUE);

		if (size)
			return size;
	}
	return 0;
}

/* Whether the function at pc may have no frame, and return to `word`, an address of code. room:
 * from above the word to where RBP points. */
ENV_FUNCTION __u32 owner_may_return(__u64 maps, __u64 word, __u64 pc, __u64 room)
{
	__u64 target = owner_called(word);

	/* A leaf's may have been laid there by other means than a call. */
	if (target == 0)
		return !(pc & OWNER_CALLER);
	/* What tables have rows for does not jump to generated code. */
	if (target != OWNER_INDIRECT && owner_has_rows(maps, target))
		return 0;
	return owner_needs(word) <= room;
}

/* Whether some of OWNER_WORDS words from `from`, but below `to`, is one that the function at pc may
 * return to if it has no frame. entry: where its caller begins, or 0. */
ENV_FUNCTION __u32 owner_words(__u64 maps, __u64 from, __u64 to, __u64 pc, __u64 entry)
{
	__u64 words[OWNER_WORDS];

	if (env_read_user(words, sizeof(words), from))
		return 1;
	for (int i = 0; i < OWNER_WORDS; i++) {
		if (from < to && words[i] - from > to - from &&
		    !(entry && words[i] - entry >= OWNER_NEAR) && owner_code(maps, words[i]) &&
		    owner_may_return(maps, words[i], pc, to - from - 8))
			return 1;
		from += 8;
	}
	return 0;
}

/*
 * Whether the function at pc may have no frame, and return to one of the words at `from`, below
 * `to`. back: where RBP says that the frame returns to. If it is the function's caller's, the call
 * before that led to it.
 */
ENV_FUNCTION __u32 owner_returns(__u64 maps, __u64 from, __u64 to, __u64 pc, __u64 back)
{
	__u64 entry = owner_called(back);

	/* A file's code jumps from one function to another (V8's). */
	if (entry <= OWNER_INDIRECT || owner_code(maps, entry) != OWNER_GENERATED ||
	    !owner_frames(entry))
		entry = 0;
	return owner_words(maps, from, to, pc, entry);
}

#endif
