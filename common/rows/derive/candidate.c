/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/derive/candidate.h"

#include "common/rows/x86/stubs.h"

/* Whether code begins like a function: it saves two registers, or sets up a frame pointer. */
static bool is_prologue(const struct flow *f, const uint8_t *code, uint32_t n)
{
	return stub_endbr(code, n) || stub_bytes(code, n, 0, "\x55\x48\x89\xe5", 4) ||
	       flow_saves(f) >= 2;
}

/* Whether the place is aligned like a function, or begins with a push or with setting up a
 * frame. */
static bool may_begin(uint64_t address, const uint8_t *code, uint32_t n)
{
	uint32_t past = stub_endbr(code, n);

	return past > 0 || !(address & 15) || (n > 1 && (code[0] & 0xf8) == 0x50) ||
	       (n > 1 && code[0] == 0x41 && (code[1] & 0xf8) == 0x50) ||
	       stub_bytes(code, n, past, "\x48\x83\xec", 3) ||
	       stub_bytes(code, n, past, "\x48\x81\xec", 3);
}

bool candidate_is_whole(const struct flow *f, const struct flow_code *c,
			const struct flow_result *result)
{
	return result->returns && is_prologue(f, c->bytes + c->entry, c->size - c->entry);
}

/* Decides whether a guess is a function. A function that begins and ends like one may also jump to
 * code that is not known as a function yet. A ret that finds the return address confirms the guess:
 * RSP must also have pointed to it at the start. */
static bool is_function(const struct flow *f, const struct flow_code *c,
			const struct flow_reader *known, const struct flow_result *result)
{
	if (result->rets || candidate_is_whole(f, c, result))
		return true;
	for (uint32_t i = 0; i < result->jumps; i++) {
		if (!known->begins(known->ctx, result->jump[i]))
			return false;
	}
	return result->returns || result->jumps ||
	       is_prologue(f, c->bytes + c->entry, c->size - c->entry) || flow_frames(f);
}

static bool is_assembly(const struct flow_reader *known, int64_t at)
{
	return known->bare && known->bare(known->ctx, at) && known->begins(known->ctx, at);
}

/* Whether every call and jump leads to known assembly functions. The code must also be aligned like
 * a function, or end with a ret. FFmpeg builds its larger FFTs from smaller ones this way, and
 * reaches them through a table of distances. The alignment matters: code that calls C without
 * aligning RSP may have no return address there (GNU Prolog). */
static bool is_made_of_others(const struct flow_code *c, const struct flow_reader *known,
			      const struct flow_result *result)
{
	if (!result->returns || !result->calls || (!result->rets && (c->address + c->entry) & 15))
		return false;
	for (uint32_t i = 0; i < result->calls; i++) {
		if (!is_assembly(known, result->call[i]))
			return false;
	}
	for (uint32_t i = 0; i < result->jumps; i++) {
		if (!is_assembly(known, result->jump[i]))
			return false;
	}
	return true;
}

/* Runs code that may not keep the stack aligned: compilers do not align it for static functions
 * that do not need it. Normally alignment shows which calls do not return. Without it, the first
 * run treats every doubtful call as not returning. */
static int run_unaligned(struct flow *f, const struct candidate *p, const struct flow_code *c,
			 const struct flow_reader *known, struct flow_result *ret)
{
	const uint8_t *code = c->bytes + c->entry;
	bool begins = may_begin(c->address + c->entry, code, c->size - c->entry);
	int r = begins ? flow_run(f, c, FLOW_UNALIGNED | FLOW_NO_RETURN, ret) : 0;

	if (!begins || r > 0 || (!r && !ret->rets))
		r = flow_run(f, c, FLOW_UNALIGNED, ret);
	if (begins && r > 0)
		r = flow_again(f, ret);
	if (r || (!p->foreign && is_made_of_others(c, known, ret)))
		return r;
	return begins && (ret->rets || (ret->returns && p->trust == CANDIDATE_TAKEN))
		       ? 0
		       : FLOW_CONTRADICTS;
}

static int run(struct flow *f, const struct flow_code *c, unsigned flags, bool again,
	       bool *ret_misaligned, struct flow_result *ret)
{
	int r = flow_run(f, c, flags, ret);

	*ret_misaligned = r == FLOW_MISALIGNED;
	return r > 0 && again ? flow_again(f, ret) : r;
}

/* Runs code as assembly with its own conventions. The result counts only if all of the code
 * fits. */
static int run_by_hand(struct flow *f, const struct candidate *p, const struct flow_code *c,
		       struct flow_result *ret)
{
	unsigned flags = FLOW_ASSEMBLY | FLOW_UNALIGNED;
	int r;

	if (p->trust == CANDIDATE_GUESSED &&
	    !may_begin(c->address + c->entry, c->bytes + c->entry, c->size - c->entry))
		return FLOW_CONTRADICTS;
	r = flow_run(f, c, flags | (p->trust == CANDIDATE_SURE ? FLOW_TRUSTED : 0), ret);
	return r || (ret->rets && !ret->unread) ? r : FLOW_CONTRADICTS;
}

int candidate_look(struct flow *f, const struct candidate *p, const struct flow_code *c,
		   const struct flow_reader *known, bool again, struct flow_result *ret)
{
	unsigned flags = p->trust == CANDIDATE_SURE ? FLOW_TRUSTED : 0;
	bool misaligned, ignored;
	int r = flow_run(f, c, flags, ret);

	misaligned = r == FLOW_MISALIGNED;
	if (r >= 0 && flow_by_hand(f)) {
		int by_hand = run_by_hand(f, p, c, ret);

		if (by_hand <= 0)
			return by_hand;
		r = flow_run(f, c, flags, ret);
	}
	if (r > 0 && again)
		r = flow_again(f, ret);
	if (!r && p->foreign && !ret->rets)
		return FLOW_CONTRADICTS;
	/* If the size is known, unread jumps can only lead to the rest of the function's code. */
	if (!r && ret->unread && p->trust != CANDIDATE_GUESSED) {
		r = run(f, c, flags | FLOW_SIZED, again && p->size, &ignored, ret);
		if (r > 0)
			r = run(f, c, flags, again, &misaligned, ret);
	}
	/* Code that never returns would continue into the code that follows it. */
	if (!r && p->trust == CANDIDATE_SURE && !p->size && ret->misaligned && !ret->returns)
		return FLOW_CONTRADICTS;
	if (r < 0 || p->trust == CANDIDATE_SURE)
		return r;

	if (misaligned && (r || !is_function(f, c, known, ret)))
		r = run_unaligned(f, p, c, known, ret);
	if (r)
		return r;
	return (p->trust == CANDIDATE_TAKEN && ret->returns) || is_function(f, c, known, ret)
		       ? 0
		       : FLOW_CONTRADICTS;
}
