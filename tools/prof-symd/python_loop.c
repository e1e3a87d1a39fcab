/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop is _PyEval_EvalFrameDefault() and what compilers and BOLT moved out of it: gcc's .cold
 * part, clang's splits. With a symbol table these have names. Without one they are found as pieces
 * of code with an FDE of their own, into which the function jumps and which jump back into it: a
 * tail call does neither in the middle of a function. The tail-calling loop of 3.14 is a function
 * for each instruction, which only a symbol table names.
 */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>
#include "tools/prof-symd/python.h"

#define MAX_LOOP (1u << 20) /* bytes of one piece */
#define MAX_OTHERS 64	    /* pieces of code jumped to that are looked at */

struct pieces {
	struct runtime_range *at;
	uint32_t count;
};

static void add_piece(struct pieces *p, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < p->count; i++) {
		struct runtime_range *r = &p->at[i];

		if (start <= r->end && end >= r->start) {
			r->start = start < r->start ? start : r->start;
			r->end = end > r->end ? end : r->end;
			return;
		}
	}
	if (p->count < RUNTIME_RANGES)
		p->at[p->count++] = (struct runtime_range){ .start = start, .end = end };
}

static bool holds(const struct runtime_range *r, uint64_t address)
{
	return address >= r->start && address < r->end;
}

static int add_symbol(void *ctx, const char *name, const struct elfview_symbol *s)
{
	(void)name;
	if (s->type == STT_FUNC && s->size > 0 && s->size <= MAX_LOOP)
		add_piece(ctx, s->value, s->value + s->size);
	return 0;
}

/* Functions of the tail-calling loop lie beside each other: one range over all, as long as they
 * fill most of it. */
struct span_of {
	uint64_t start, end, bytes;
};

static int add_tail(void *ctx, const char *name, const struct elfview_symbol *s)
{
	struct span_of *all = ctx;

	(void)name;
	if (s->type != STT_FUNC || s->size == 0 || s->size > MAX_LOOP)
		return 0;
	if (!all->bytes || s->value < all->start)
		all->start = s->value;
	if (!all->bytes || s->value + s->size > all->end)
		all->end = s->value + s->size;
	all->bytes += s->size;
	return 0;
}

/* Calls back for each direct jump in a piece of code, linearly. */
static int each_jump(const struct elfview *im, const struct runtime_range *r,
		     void (*jump)(void *ctx, uint64_t target, bool conditional), void *ctx)
{
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;
	uint8_t *code;
	size_t size = (size_t)(r->end - r->start);
	int ret;

	if (r->end <= r->start || size > MAX_LOOP)
		return 0;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	ret = elfview_read(im, r->start, code, size);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; ret == 0 && at < size; at += in.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code + at,
								size - at, &in))) {
			in.length = 1;
			continue;
		}
		if ((in.meta.category == ZYDIS_CATEGORY_COND_BR ||
		     in.meta.category == ZYDIS_CATEGORY_UNCOND_BR) &&
		    in.raw.imm[0].is_relative && in.raw.imm[0].size)
			jump(ctx, r->start + at + in.length + (uint64_t)in.raw.imm[0].value.s,
			     in.meta.category == ZYDIS_CATEGORY_COND_BR);
	}
	free(code);
	return ret < 0 ? ret : 0;
}

struct outside {
	const struct elfview *im;
	const struct runtime_range *inside;
	struct runtime_range at[MAX_OTHERS];
	uint32_t count;
};

static void note_outside(void *ctx, uint64_t target, bool conditional)
{
	struct outside *o = ctx;
	struct runtime_range r;
	uint64_t start, end;

	(void)conditional;
	if (holds(o->inside, target) || o->count == MAX_OTHERS)
		return;
	for (uint32_t i = 0; i < o->count; i++)
		if (holds(&o->at[i], target))
			return;
	if (elfview_function(o->im, target, &start, &end) != 0)
		return;
	r = (struct runtime_range){ .start = start, .end = end };
	o->at[o->count++] = r;
}

struct back {
	const struct runtime_range *inside;
	uint32_t count;
};

/* Into the middle: to the beginning would be a tail call. */
static void note_back(void *ctx, uint64_t target, bool conditional)
{
	struct back *b = ctx;

	(void)conditional;
	b->count += target != b->inside->start && holds(b->inside, target);
}

/* Pieces without a name. */
static int find_pieces(const struct elfview *im, const struct runtime_range *eval, struct pieces *p)
{
	struct outside o = { .im = im, .inside = eval };
	int r = each_jump(im, eval, note_outside, &o);

	for (uint32_t i = 0; r == 0 && i < o.count; i++) {
		struct back b = { .inside = eval };

		r = each_jump(im, &o.at[i], note_back, &b);
		if (b.count > 0)
			add_piece(p, o.at[i].start, o.at[i].end);
	}
	return r;
}

int python_find_loop(const struct elfview *im, const struct elfview_symbol *eval,
		     struct runtime_range ret[static RUNTIME_RANGES], uint32_t *ret_count)
{
	struct runtime_range whole = { .start = eval->value, .end = eval->value + eval->size };
	struct pieces p = { .at = ret };
	struct span_of tail = { 0 };
	int r;

	if (eval->size == 0 && elfview_function(im, eval->value, &whole.start, &whole.end) != 0)
		whole.end = whole.start + 1;
	add_piece(&p, whole.start, whole.end);
	r = elfview_symbols(im, false, "_PyEval_EvalFrameDefault.", add_symbol, &p);
	if (r == 0)
		r = elfview_symbols(im, false, "_TAIL_CALL_", add_tail, &tail);
	if (r == 0 && tail.bytes && tail.end - tail.start <= 2 * tail.bytes)
		add_piece(&p, tail.start, tail.end);
	if (r != -ENOMEM && p.count == 1)
		r = find_pieces(im, &whole, &p);
	*ret_count = p.count;
	return r == -ENOMEM ? r : 0;
}
