/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/walker/shadow.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/walk/walk.h"
#include "common/wire/msg.h"
#include "tests/walker/process.h"

#define MAX_CALLS (1u << 20)
#define NEAR (64u << 10)	 /* bytes by which a function's own frame may grow in one step */
#define SIGNAL_FRAME (16u << 10) /* bytes of the largest one */
/* Of the ucontext, which begins behind the return address (asm/sigcontext.h). */
#define UCONTEXT_PC 168
#define UCONTEXT_SP 160
#define MAX_SWITCHES 16 /* the number of calls that are searched */
#define PAGE 4096u

static struct shadow_strand *current(struct shadow *s)
{
	return &s->strands[s->current];
}

static uint64_t word_at(uint64_t address)
{
	uint64_t word = 0;

	(void)process_read(NULL, &word, sizeof(word), address);
	return word;
}

static void claim_forget(struct shadow_claim *c)
{
	free(c->pcs);
	*c = (struct shadow_claim){ 0 };
}

static void claim_disprove(struct shadow *s, struct shadow_claim *c)
{
	s->disproved += c->stacks;
	s->disproved_complete += c->complete;
	claim_forget(c);
}

static struct shadow_claim *claims_best(struct shadow_strand *t)
{
	struct shadow_claim *best = t->claims;

	for (int i = 1; i < SHADOW_CLAIMS; i++)
		if (t->claims[i].stacks > best->stacks)
			best = &t->claims[i];
	return best;
}

/* Whether both may be right: one continues where the other was cut, or they are equal. */
static bool claims_agree(const struct shadow_claim *a, const struct shadow_claim *b)
{
	size_t both = a->count < b->count ? a->count : b->count;

	return (!both || !memcmp(a->pcs, b->pcs, both * sizeof(*a->pcs))) &&
	       (a->count >= b->count || !a->whole) && (b->count >= a->count || !b->whole);
}

/* If claims differ, all but the most frequent are wrong. */
static void claims_decide(struct shadow *s, struct shadow_strand *t)
{
	struct shadow_claim *best = claims_best(t);

	for (int i = 0; i < SHADOW_CLAIMS; i++)
		if (!claims_agree(&t->claims[i], best))
			claim_disprove(s, &t->claims[i]);
	for (int i = 0; i < SHADOW_CLAIMS; i++)
		claim_forget(&t->claims[i]);
}

static void strand_forget(struct shadow *s, struct shadow_strand *t, uint64_t sp)
{
	claims_decide(s, t);
	t->depth = t->since = 0;
	t->low = t->high = t->left = sp;
	t->from = SHADOW_NONE;
	t->bound_count = 0;
	t->rooted = t->signal = false;
}

void shadow_begin(struct shadow *s, uint64_t sp, bool rooted)
{
	shadow_done(s);
	s->count = 1;
	s->current = 0;
	strand_forget(s, &s->strands[0], sp);
	s->strands[0].rooted = rooted;
}

void shadow_end(struct shadow *s)
{
	for (int i = 0; i < s->count; i++)
		claims_decide(s, &s->strands[i]);
}

void shadow_done(struct shadow *s)
{
	for (int i = 0; i < SHADOW_STRANDS; i++) {
		free(s->strands[i].calls);
		for (int k = 0; k < SHADOW_CLAIMS; k++)
			claim_forget(&s->strands[i].claims[k]);
		s->strands[i] = (struct shadow_strand){ 0 };
	}
}

static void push(struct shadow_strand *t, struct shadow_call c)
{
	/* Calls at or below this place are over. */
	while (t->depth && t->calls[t->depth - 1].slot <= c.slot)
		t->depth--;
	if (t->since > t->depth)
		t->since = t->depth;
	if (t->depth == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 64;
		if (t->cap > MAX_CALLS)
			errx(1, "deeper than %u calls", MAX_CALLS);
		t->calls = reallocarray(t->calls, t->cap, sizeof(*t->calls));
		if (!t->calls)
			errx(1, "no memory");
	}
	t->calls[t->depth++] = c;
	if (c.slot < t->low)
		t->low = c.slot;
}

void shadow_call(struct shadow *s, uint64_t address, uint64_t slot)
{
	s->popped = 0;
	push(current(s), (struct shadow_call){ .address = address, .slot = slot });
}

void shadow_relocate(struct shadow *s, uint64_t slot, uint64_t to)
{
	struct shadow_strand *t = current(s);
	struct shadow_call *c = t->depth ? &t->calls[t->depth - 1] : NULL;

	if (c && c->slot == slot && (t->depth == 1 || to < c[-1].slot))
		c->slot = to;
}

/* Whether the word at slot is c's return address: the original, or a copy further down, with more
 * arguments above it (V8's calls with an array of them). */
static bool is_of(const struct shadow_call *c, uint64_t slot, uint64_t word)
{
	return c->slot == slot || (c->slot > slot && word == c->address);
}

/* Calls made before the last switch to t have returned: it continued where it was left. */
static void resumed(struct shadow_strand *t)
{
	while (t->since > t->depth) {
		t->signal = false;
		t->from = t->bound_count ? SHADOW_GONE : SHADOW_NONE;
		t->since = t->bound_count ? t->bounds[--t->bound_count] : 0;
	}
}

/* Whether the slot held the claim's next frame when the claim was last made. */
static bool was_at(const struct shadow_claim *c, uint64_t slot)
{
	uint64_t i = (slot - c->words_at) / sizeof(*c->words);

	return slot >= c->words_at && i < SHADOW_CLAIM_WORDS && c->words[i] == c->pcs[0];
}

/* Looks for the claim's frames, from the k-th on, among its words, from the i-th on. Returns the
 * first frame that is not there. */
static size_t held_from(const struct shadow_claim *c, size_t i, size_t k)
{
	for (; i < SHADOW_CLAIM_WORDS && k < c->count; i++)
		k += c->words[i] == c->pcs[k];
	return k;
}

/* How many of a claim's frames lie below sp, judged by its words. A word may occur twice (a copy of
 * a return address, or recursion): frames that the words above sp can also hold are not below. */
static size_t left_below(const struct shadow_claim *c, uint64_t sp)
{
	size_t end = (sp - c->words_at) / sizeof(*c->words), below = 0, gone = 0;

	if (sp <= c->words_at || end >= SHADOW_CLAIM_WORDS)
		return 0;
	for (size_t i = 0; i < end && below < c->count; i++)
		below += c->words[i] == c->pcs[below];
	for (size_t k = 1; k <= below; k++)
		if (held_from(c, end, k) > held_from(c, end, gone))
			gone = k;
	return gone;
}

/* Whether c was made without the next frame of `right` while the stack held that frame. */
static bool lacks_next(const struct shadow_claim *c, const struct shadow_claim *right)
{
	uint64_t slot = right->words_at;

	for (size_t i = 0; right->words[i] != right->pcs[0]; i++)
		slot += sizeof(*right->words);
	size_t i = (slot - c->words_at) / sizeof(*c->words);

	return slot >= c->words_at && i < SHADOW_CLAIM_WORDS && c->words[i] == right->pcs[0] &&
	       (!c->count || c->pcs[0] != right->pcs[0]);
}

/* A jump leaves frames below the first observed call, without a return (HotSpot, to the handler of
 * an exception). The claims drop these frames. If the most frequent claim has them, those that lack
 * them are wrong. */
static void jumped_below(struct shadow *s, struct shadow_strand *t, uint64_t sp)
{
	struct shadow_claim *best = claims_best(t);
	bool left = best->stacks && left_below(best, sp);

	for (int i = 0; left && i < SHADOW_CLAIMS; i++)
		if (t->claims[i].stacks && lacks_next(&t->claims[i], best))
			claim_disprove(s, &t->claims[i]);
	for (int i = 0; i < SHADOW_CLAIMS; i++) {
		struct shadow_claim *c = &t->claims[i];
		size_t gone = c->stacks ? left_below(c, sp) : 0;

		c->count -= gone;
		if (gone)
			memmove(c->pcs, c->pcs + gone, c->count * sizeof(*c->pcs));
	}
}

/* A return, judged by the word in the slot, to a frame below the first observed call: the right
 * claim's next frame. */
static void returned_below(struct shadow *s, struct shadow_strand *t, uint64_t address,
			   uint64_t slot)
{
	for (int i = 0; i < SHADOW_CLAIMS; i++) {
		struct shadow_claim *c = &t->claims[i];

		const bool next = c->count && c->pcs[0] == address;

		/* Pushed since then: a jump, or SBCL returns more than three values. */
		if (slot < c->words_at && !next)
			continue;
		if (next || (c->count && was_at(c, slot)))
			memmove(c->pcs, c->pcs + 1, --c->count * sizeof(*c->pcs));
		else if (c->whole || c->count)
			claim_disprove(s, c);
	}
}

void shadow_return(struct shadow *s, uint64_t address, uint64_t slot)
{
	struct shadow_strand *t = current(s);

	s->popped = 0;
	for (size_t i = t->depth; i-- > 0;) {
		if (t->calls[i].slot != slot &&
		    (i + 1 < t->depth || !is_of(&t->calls[i], slot, address)))
			continue;
		t->depth = i;
		resumed(t);
		return;
	}
	if (t->rooted || (t->depth && t->calls[0].slot > slot))
		return; /* no call belongs to it: a jump */
	t->depth = 0;
	if (slot + 8 > t->high)
		t->high = slot + 8;
	returned_below(s, t, address, slot);
}

void shadow_jump(struct shadow *s, uint64_t sp)
{
	struct shadow_strand *t = current(s);

	while (t->depth && t->calls[t->depth - 1].slot < sp)
		t->depth--;
	resumed(t);
	if (!t->rooted && !t->depth)
		jumped_below(s, t, sp);
}

bool shadow_is_frame(const struct shadow *s, uint64_t fp)
{
	const struct shadow_call *c;
	uint64_t low = 0;
	size_t i = 0;

	while ((c = shadow_at(s, i)) && c->slot < fp + 8) {
		low = c->slot;
		i++;
	}
	if (!c && !s->strands[s->current].rooted)
		return !i || fp - low < NEAR;
	return i && c && c->slot == fp + 8;
}

void shadow_unwound(struct shadow *s, uint64_t fp)
{
	struct shadow_strand *t = current(s);

	while (t->depth && t->calls[t->depth - 1].slot < fp + 8)
		t->depth--;
	resumed(t);
	if (!t->depth && !t->rooted)
		claims_decide(s, t);
}

/* A known strand near sp that has run. */
static int strand_at(const struct shadow *s, uint64_t sp)
{
	for (int i = 0; i < s->count; i++)
		if (i != s->current && sp >= s->strands[i].low && sp <= s->strands[i].high)
			return i;
	return -1;
}

static int strand_new(struct shadow *s, uint64_t sp)
{
	int i = s->count;

	if (i < SHADOW_STRANDS) {
		s->count++;
	} else {
		/* The numbers in `from` may name it: they are forgotten with it. */
		i = (s->current + 1) % SHADOW_STRANDS;
		for (int k = 0; k < SHADOW_STRANDS; k++)
			if (s->strands[k].from == i)
				s->strands[k].from = SHADOW_GONE;
	}
	strand_forget(s, &s->strands[i], sp);
	return i;
}

static void switch_to(struct shadow *s, uint64_t before, uint64_t sp, bool signal)
{
	int from = s->current, to = strand_at(s, sp);
	bool known = to >= 0;

	if (!known)
		to = strand_new(s, sp);
	struct shadow_strand *t = &s->strands[to];

	while (t->depth && t->calls[t->depth - 1].slot < sp)
		t->depth--;
	/* Another thread may have run on it, or it has another use by now. */
	for (size_t i = 0; known && i < t->depth; i++) {
		if (word_at(t->calls[i].slot) != t->calls[i].address && !t->calls[i].interrupted) {
			strand_forget(s, t, sp);
			known = false;
		}
	}
	/* It continues elsewhere than where it was left. Frames of the claims that were on other
	 * stacks may be gone (Go's calls from C). */
	if (known && !t->rooted && !t->depth && sp != t->left)
		claims_decide(s, t);
	s->strands[from].left = before;
	if (t->from != SHADOW_NONE && t->bound_count < SHADOW_BOUNDS && t->since < t->depth)
		t->bounds[t->bound_count++] = t->since;
	t->since = t->depth;
	t->from = from;
	t->from_depth = s->strands[from].depth;
	t->from_sp = before;
	t->signal = signal;
	if (sp < t->low)
		t->low = sp;
	s->current = to;
	s->jumps_to_other_stacks++;
}

/* RSP went down: calls below its former place are over, unless the pushed word restores one
 * (vfork). */
static void went_down(struct shadow_strand *t, uint64_t before, uint64_t sp)
{
	while (t->depth && t->calls[t->depth - 1].slot < before) {
		const struct shadow_call *c = &t->calls[t->depth - 1];

		if (c->slot == sp && before - sp == 8 && word_at(sp) == c->address)
			return;
		t->depth--;
	}
	resumed(t);
}

void shadow_moved(struct shadow *s, enum shadow_move how, uint64_t before, uint64_t sp)
{
	struct shadow_strand *t = current(s);
	bool other = false;

	if (how == SHADOW_ADJUST || (sp >= before && sp <= t->high))
		other = false;
	else if (strand_at(s, sp) >= 0)
		other = true;
	else if (sp > before)
		other = t->rooted || how != SHADOW_FRAME || sp - before > NEAR;
	else
		other = how == SHADOW_MEMORY || before - sp > NEAR;
	if (other) {
		switch_to(s, before, sp, false);
		return;
	}
	/* RSP went up into frames that were never observed: an unknown number of them is gone. */
	if (sp > before && how >= SHADOW_REGISTER && !t->rooted &&
	    (!t->depth || t->calls[0].slot < sp))
		claims_decide(s, t);
	if (sp < before) {
		went_down(t, before, sp);
		if (s->popped && before - sp == 8 && word_at(sp) == s->popped) {
			const struct shadow_call *c = t->depth ? &t->calls[t->depth - 1] : NULL;

			/* Unless that call still exists: it was not moved, or a copy was popped. */
			if (!c || (c->slot != sp && c->slot != s->popped_slot))
				push(t, (struct shadow_call){ .address = s->popped, .slot = sp });
			s->popped = 0;
		}
	} else if (sp - before == 8 && t->depth &&
		   is_of(&t->calls[t->depth - 1], before, word_at(before))) {
		s->popped = t->calls[t->depth - 1].address;
		s->popped_slot = t->calls[t->depth - 1].slot;
	}
	if (sp < t->low)
		t->low = sp;
	if (sp > t->high && !t->rooted)
		t->high = sp;
}

void shadow_signal(struct shadow *s, uint64_t pc, uint64_t before, uint64_t sp, uint64_t address)
{
	if (sp > before || before - sp > SIGNAL_FRAME)
		switch_to(s, before, sp, true);
	push(current(s),
	     (struct shadow_call){ .address = pc, .slot = sp + 8, .interrupted = true });
	push(current(s), (struct shadow_call){ .address = address, .slot = sp });
}

void shadow_sigreturn(struct shadow *s, uint64_t pc, uint64_t sp)
{
	struct shadow_strand *t = current(s);
	uint64_t interrupted = 0;

	while (t->depth && !t->calls[--t->depth].interrupted)
		;
	if (t->depth < t->cap && t->calls[t->depth].interrupted)
		interrupted = t->calls[t->depth].address;
	resumed(t);
	if (sp < t->low || sp > t->high) {
		if (t->signal && t->from >= 0 && sp <= s->strands[t->from].high &&
		    sp >= s->strands[t->from].low)
			s->current = t->from;
		else
			switch_to(s, t->low, sp, false);
	}
	/* The handler changed the context as if a call had been interrupted. */
	if (pc != interrupted && word_at(sp) == interrupted)
		shadow_call(s, interrupted, sp);
}

const struct shadow_call *shadow_at(const struct shadow *s, size_t i)
{
	const struct shadow_strand *t = &s->strands[s->current];

	return i < t->depth ? &t->calls[t->depth - 1 - i] : NULL;
}

/* --- comparison --- */

struct comparison {
	const struct shadow *shadow;
	const struct stack *stack;
	bool below;	/* calls below RSP count */
	size_t claimed; /* the first frame that only the walker knows */
	size_t switches;
};

/* Compares frames from `at` on with the first `depth` calls of strand n. */
static enum shadow_verdict compare_from(struct comparison *c, int n, size_t depth, uint64_t sp,
					bool current, size_t at)
{
	const struct shadow_strand *t = &c->shadow->strands[n];
	const struct stack *st = c->stack;
	size_t known = t->from != SHADOW_NONE ? t->since : 0;
	bool doubt = t->from != SHADOW_NONE && !t->signal;

	if (c->switches++ > MAX_SWITCHES)
		return SHADOW_UNKNOWN;
	for (size_t i = depth; i-- > known;) {
		if (t->calls[i].slot < sp && !(current && c->below))
			continue;
		if (at == st->count)
			return st->reason ? SHADOW_CUT : SHADOW_WRONG;
		/* Go's handlers insert a call at the interrupted place. */
		if (t->calls[i].interrupted &&
		    word_at(t->calls[i].slot + UCONTEXT_PC) != t->calls[i].address)
			return SHADOW_UNKNOWN;
		/* Its own return address, which a function may replace (HotSpot, by a handler). */
		if (st->frames[at].pc != t->calls[i].address &&
		    st->frames[at].pc != word_at(t->calls[i].slot))
			return SHADOW_WRONG;
		at++;
	}
	if (t->signal && t->from >= 0)
		return compare_from(c, t->from, t->from_depth, t->from_sp, false, at);
	if (at == st->count && st->reason)
		return SHADOW_CUT;
	if (doubt) {
		/* Where it came from, or where it was left. */
		if (t->from >= 0 &&
		    compare_from(c, t->from, t->from_depth, t->from_sp, false, at) == SHADOW_EQUAL)
			return SHADOW_EQUAL;
		if (!t->rooted)
			return SHADOW_UNKNOWN;
		size_t i = known < depth ? known : depth;

		while (i && at < st->count && st->frames[at].pc == t->calls[i - 1].address)
			i--, at++;
		return !i && at == st->count ? SHADOW_EQUAL : SHADOW_UNKNOWN;
	}
	if (t->rooted)
		return at == st->count ? SHADOW_EQUAL : SHADOW_WRONG;
	if (n == c->shadow->current)
		c->claimed = at;
	return SHADOW_UNKNOWN;
}

static enum shadow_verdict compare(struct shadow *s, const struct stack *st, uint64_t sp,
				   bool below, size_t *ret_claimed)
{
	struct comparison c = { .shadow = s, .stack = st, .below = below };
	enum shadow_verdict v = compare_from(&c, s->current, current(s)->depth, sp, true, 1);

	*ret_claimed = v == SHADOW_UNKNOWN ? c.claimed : 0;
	return v;
}

/*
 * Code that is about to jump up the stack may have a complete stack already: a register holds the
 * target in glibc's longjmp, the top of the stack does in OCaml's raise. Its frames are then those
 * of the target: the shadow's, without some. Frames below an unrooted strand are not compared.
 */
static bool is_jump(const struct shadow *s, const struct stack *st, uint64_t sp,
		    const uint64_t *registers)
{
	const struct shadow_strand *t = &s->strands[s->current];
	bool held = false;

	if (st->count < 2 || (t->depth && t->calls[t->depth - 1].address == st->frames[1].pc))
		return false;
	for (unsigned i = 0; i < 16; i++)
		held |= registers[i] == st->frames[1].pc;
	held |= word_at(sp) == st->frames[1].pc || word_at(sp + 8) == st->frames[1].pc;
	if (!held || !t->rooted)
		return held;
	if (st->count - 2 > t->depth)
		return false;
	for (size_t i = 2; i < st->count; i++)
		if (st->frames[i].pc != t->calls[st->count - 1 - i].address)
			return false;
	return true;
}

/* Whether c may be said by one who says it of st's frames from `at` on. */
static bool agrees(const struct shadow_claim *c, const struct stack *st, size_t at)
{
	size_t n = st->count - at, both = n < c->count ? n : c->count;

	for (size_t i = 0; i < both; i++)
		if (c->pcs[i] != st->frames[at + i].pc)
			return false;
	return (n <= c->count || !c->whole) && (n >= c->count || st->reason);
}

/* Keeps the words of the stack, up to its end. */
static void claim_read(struct shadow_claim *c)
{
	size_t n = 1;

	memset(c->words, 0, sizeof(c->words));
	for (size_t i = 0; i < SHADOW_CLAIM_WORDS; i += n) {
		uint64_t at = c->words_at + i * sizeof(*c->words);

		n = (PAGE - at % PAGE + sizeof(*c->words) - 1) / sizeof(*c->words);
		if (n > SHADOW_CLAIM_WORDS - i)
			n = SHADOW_CLAIM_WORDS - i;
		if (process_read(NULL, c->words + i, n * sizeof(*c->words), at))
			return;
	}
}

/* Adds the walker's claim about the frames below the strand, whose RSP is sp. False: no earlier
 * stack had made it. */
static bool claim(struct shadow *s, struct shadow_strand *t, const struct stack *st, size_t at,
		  uint64_t sp)
{
	size_t n = st->count - at;
	int i = 0, few = 0;
	bool first = true;

	for (; i < SHADOW_CLAIMS && !(t->claims[i].stacks && agrees(&t->claims[i], st, at)); i++) {
		first &= !t->claims[i].stacks;
		if (t->claims[i].stacks < t->claims[few].stacks)
			few = i;
	}
	bool known = i < SHADOW_CLAIMS;
	struct shadow_claim *c = &t->claims[known ? i : few];

	if (!known)
		claim_disprove(s, c); /* none, or one that was rarely made */
	if (n > c->count || !known) {
		c->pcs = reallocarray(c->pcs, n + 1, sizeof(*c->pcs));
		if (!c->pcs)
			errx(1, "no memory");
		for (size_t k = 0; k < n; k++)
			c->pcs[k] = st->frames[at + k].pc;
		c->count = n;
	}
	c->whole |= !st->reason;
	c->stacks++;
	c->complete += !st->reason;
	c->words_at = sp;
	if (t->depth && t->calls[0].interrupted)
		c->words_at = word_at(t->calls[0].slot + UCONTEXT_SP);
	else if (t->depth)
		c->words_at = t->calls[0].slot + sizeof(*c->words);
	claim_read(c);
	return known || first;
}

enum shadow_verdict shadow_compare(struct shadow *s, const struct stack *st, uint64_t pc,
				   uint64_t sp, const uint64_t registers[16])
{
	size_t claimed;

	if (!st->count || st->frames[0].pc != pc)
		return SHADOW_WRONG;
	enum shadow_verdict v = compare(s, st, sp, true, &claimed);

	if (v == SHADOW_WRONG)
		v = compare(s, st, sp, false, &claimed);
	if (v == SHADOW_WRONG && is_jump(s, st, sp, registers))
		return SHADOW_JUMP;
	if (v == SHADOW_UNKNOWN && claimed && !claim(s, current(s), st, claimed, sp))
		return SHADOW_DISPUTED;
	return v;
}
