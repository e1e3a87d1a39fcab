/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shadow of a thread's stacks: built only from observed calls, returns, signals and moves of
 * RSP; it uses no unwind rules.
 *
 * A thread may run on several stacks (coroutines, Go, OCaml 5, signal stacks): each is a strand,
 * which the value of RSP identifies. A strand is rooted if it was observed from its first
 * instruction. Otherwise the frames below its first observed call are unknown. After a program
 * loads RSP, the shadow also does not know with which calls it continues: those of the former
 * strand, or the older ones of the new strand. Either is accepted if it is equal as a whole; else
 * the verdict is SHADOW_UNKNOWN, never SHADOW_EQUAL on a guess.
 *
 * A walk below an unrooted strand is a claim of the walker. Later returns confirm a claim frame by
 * frame, or prove that all stacks that made it were wrong. Of claims that contradict each other one
 * at most is right: all but the most frequent count as wrong.
 */
#ifndef TESTS_WALKER_SHADOW_H
#define TESTS_WALKER_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/prof-dump/space/stack.h"

/* How an instruction changed RSP. */
enum shadow_move {
	SHADOW_ADJUST,	 /* push, pop, add, sub, and: the same stack */
	SHADOW_FRAME,	 /* from RBP: the same stack, mostly */
	SHADOW_REGISTER, /* from another register */
	SHADOW_MEMORY,	 /* from memory */
};

enum shadow_verdict {
	SHADOW_EQUAL,	 /* all frames, up to the root */
	SHADOW_CUT,	 /* the beginning of the shadow, and a reason for the end */
	SHADOW_JUMP,	 /* longjmp or the like, about to jump: has the target's stack */
	SHADOW_UNKNOWN,	 /* equal as far as the shadow is known, which is not up to a root */
	SHADOW_DISPUTED, /* likewise, and says of the rest what no stack had said before */
	SHADOW_WRONG,
};

#define SHADOW_CLAIMS 8
#define SHADOW_CLAIM_WORDS 512

/* Stacks that said the same of what lies below a strand, since a return last proved some of it. */
struct shadow_claim {
	uint64_t *pcs; /* leaf first */
	size_t count;
	bool whole;		   /* up to a root; else a cut one, of which more may be said */
	uint64_t stacks, complete; /* how many said so, and how many of these to be complete */
	/* Words of the stack when the claim was last made, from words_at on. A program may write
	 * another return address later (HotSpot: the handler of an exception). */
	uint64_t words[SHADOW_CLAIM_WORDS], words_at;
};

struct shadow_call {
	uint64_t address; /* where it returns to */
	uint64_t slot;	  /* where that stands on the stack */
	bool interrupted; /* by a signal: the pc itself */
};

#define SHADOW_NONE -1 /* no switch since its first instruction, or its base */
#define SHADOW_GONE -2 /* which one is not known any more */
#define SHADOW_BOUNDS 64

struct shadow_strand {
	struct shadow_call *calls; /* outermost first */
	size_t depth, cap;
	size_t since;	    /* calls from here on were seen since the last switch to it */
	uint64_t low, high; /* where RSP was */
	uint64_t left;	    /* where it was at the last switch to another one */
	int from;	    /* the strand before that switch, or one of these */
	size_t from_depth;
	uint64_t from_sp;
	size_t bounds[SHADOW_BOUNDS]; /* `since` of the switches before, where calls go on */
	int bound_count;
	bool rooted;
	bool signal; /* that switch was a signal's: no doubt where it goes on */
	struct shadow_claim claims[SHADOW_CLAIMS]; /* of which one at most is right */
};

#define SHADOW_STRANDS 256

struct shadow {
	struct shadow_strand strands[SHADOW_STRANDS];
	int count, current;
	uint64_t jumps_to_other_stacks;
	/* A return address that was popped, and may be pushed again further up or down: V8 lays
	 * arguments below it so. 0: none. And where its call stands, which may be a copy. */
	uint64_t popped, popped_slot;
	/* Stacks that were unknown or disputed when they were compared, and proved to be wrong. */
	uint64_t disproved, disproved_complete;
};

/* Forgets all. The thread stands at sp: at its first instruction (rooted), or anywhere. */
void shadow_begin(struct shadow *s, uint64_t sp, bool rooted);
/* Decides what is in dispute. The strands are gone; the figures stay. */
void shadow_end(struct shadow *s);
void shadow_done(struct shadow *s);
/* A call was made: the word at slot is where it returns to. */
void shadow_call(struct shadow *s, uint64_t address, uint64_t slot);
/* The word at slot was returned to. */
void shadow_return(struct shadow *s, uint64_t address, uint64_t slot);
/* The word at slot, if it is a return address, was moved to `to` (SBCL: into the callee's frame;
 * HotSpot: to where the stack is aligned). */
void shadow_relocate(struct shadow *s, uint64_t slot, uint64_t to);
/* A jump to elsewhere: calls below sp are never returned from. */
void shadow_jump(struct shadow *s, uint64_t sp);
/* Whether a call that is known, but not the innermost, has its return address above fp; of an
 * unrooted strand it need not be known. */
bool shadow_is_frame(const struct shadow *s, uint64_t fp);
/* The program is to go on in that frame: what it called is never returned to, although RSP is still
 * below. */
void shadow_unwound(struct shadow *s, uint64_t fp);
void shadow_moved(struct shadow *s, enum shadow_move how, uint64_t before, uint64_t sp);
/* The kernel laid a signal frame at sp, whose first word is where the handler returns to. */
void shadow_signal(struct shadow *s, uint64_t pc, uint64_t before, uint64_t sp, uint64_t address);
void shadow_sigreturn(struct shadow *s, uint64_t pc, uint64_t sp);
/* st: the walker's. registers: the thread's, by any numbers. */
enum shadow_verdict shadow_compare(struct shadow *s, const struct stack *st, uint64_t pc,
				   uint64_t sp, const uint64_t registers[16]);
/* Calls that the shadow knows, innermost first: the i-th. NULL: no more. */
const struct shadow_call *shadow_at(const struct shadow *s, size_t i);

#endif
