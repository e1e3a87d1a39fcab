/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop is _PyEval_EvalFrameDefault() and the parts that compilers and BOLT moved out of it:
 * gcc's .cold part, clang's splits. In a symbol table these parts have names. Without one, a part
 * is code with an FDE of its own which the function jumps into, and which jumps back into the
 * function's middle. A tail call does not do that.
 *
 * The tail-calling loop (from 3.14 on) has a function per instruction, next to each other. They are
 * found by their names, or through a table of 256 functions. _PyEval_EvalFrameDefault() or a
 * function that it calls refers to that table.
 */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>
#include "common/names/runtime/python/python.h"

#define MAX_LOOP (1u << 20)   /* bytes of one piece */
#define MAX_OTHERS 64	      /* targets of jumps that are examined */
#define MAX_ENTRY (16u << 10) /* bytes of a function that may begin a tail-calling loop */
#define MAX_REFERENCES 512    /* addresses, and called functions, that are examined */
#define MAX_TAILS 512
#define PADDING 64	  /* bytes between functions */
#define TABLE 256	  /* entries: one for each instruction */
#define TABLE_DISTINCT 64 /* different functions in a table, at least */

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
	if (s->type == STT_FUNC && s->size > 0 && s->size <= MAX_LOOP)
		add_piece(ctx, s->value, s->value + s->size);
	return 0;
}

/* The functions of a tail-calling loop. They lie next to each other, in a few runs; larger runs are
 * used first. */
struct tails {
	struct runtime_range at[MAX_TAILS];
	uint32_t count;
};

static void add_tail(struct tails *t, uint64_t start, uint64_t end)
{
	if (t->count < MAX_TAILS)
		t->at[t->count++] = (struct runtime_range){ .start = start, .end = end };
}

static int add_named_tail(void *ctx, const char *name, const struct elfview_symbol *s)
{
	if (s->type == STT_FUNC && s->size > 0 && s->size <= MAX_LOOP)
		add_tail(ctx, s->value, s->value + s->size);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct runtime_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_size(const void *a, const void *b)
{
	const struct runtime_range *x = a, *y = b;

	return x->end - x->start > y->end - y->start ? -1 : x->end - x->start < y->end - y->start;
}

static void add_tails(struct pieces *p, struct tails *t)
{
	uint32_t runs = 0;

	qsort(t->at, t->count, sizeof(t->at[0]), by_start);
	for (uint32_t i = 0; i < t->count; i++) {
		struct runtime_range *last = runs ? &t->at[runs - 1] : NULL;

		if (last && t->at[i].start <= last->end + PADDING)
			last->end = t->at[i].end > last->end ? t->at[i].end : last->end;
		else
			t->at[runs++] = t->at[i];
	}
	qsort(t->at, runs, sizeof(t->at[0]), by_size);
	for (uint32_t i = 0; i < runs; i++)
		add_piece(p, t->at[i].start, t->at[i].end);
}

/* Decodes a piece of code linearly, and calls `jump` for each direct jump. */
static int each_jump(struct elfview *im, const struct runtime_range *r,
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
	struct elfview *im;
	const struct runtime_range *inside;
	struct runtime_range at[MAX_OTHERS];
	uint32_t count;
};

static void note_outside(void *ctx, uint64_t target, bool conditional)
{
	struct outside *o = ctx;
	struct runtime_range r;
	uint64_t start, end;

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

/* Records a jump back. Only jumps into the middle count: one to the beginning may be a tail
 * call. */
static void note_back(void *ctx, uint64_t target, bool conditional)
{
	struct back *b = ctx;

	b->count += target != b->inside->start && holds(b->inside, target);
}

/* Finds parts that have no names. */
static int find_pieces(struct elfview *im, const struct runtime_range *eval, struct pieces *p)
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

/* --- a table of functions --- */

struct references {
	uint64_t callees[MAX_REFERENCES], addresses[MAX_REFERENCES];
	uint32_t callee_count, address_count;
};

static void add_reference(uint64_t at[static MAX_REFERENCES], uint32_t *count, uint64_t address)
{
	for (uint32_t i = 0; i < *count; i++)
		if (at[i] == address)
			return;
	if (*count < MAX_REFERENCES)
		at[(*count)++] = address;
}

/* Finds the functions that the code calls, and the addresses in its operands: "table(%rip)" or
 * "table(,%rax,8)". */
static int find_references(struct elfview *im, uint64_t start, uint64_t end, uint64_t most,
			   struct references *ret)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;
	uint8_t *code;
	int r;

	if (end <= start || end - start > most)
		return 0;
	code = malloc((size_t)(end - start));
	if (!code)
		return -ENOMEM;
	r = elfview_read(im, start, code, (size_t)(end - start));
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint64_t pc = start; r == 0 && pc < end; pc += in.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + (pc - start),
							 (size_t)(end - pc), &in, op))) {
			in.length = 1;
			continue;
		}
		for (unsigned i = 0; i < in.operand_count_visible; i++) {
			uint64_t d = op[i].type == ZYDIS_OPERAND_TYPE_MEMORY
					     ? (uint64_t)op[i].mem.disp.value
					     : 0;

			if (op[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[i].imm.is_relative &&
			    (in.meta.category == ZYDIS_CATEGORY_CALL ||
			     in.meta.category == ZYDIS_CATEGORY_UNCOND_BR))
				add_reference(ret->callees, &ret->callee_count,
					      pc + in.length + op[i].imm.value.u);
			else if (d && op[i].mem.base == ZYDIS_REGISTER_RIP)
				add_reference(ret->addresses, &ret->address_count,
					      pc + in.length + d);
			else if (d && op[i].mem.base == ZYDIS_REGISTER_NONE &&
				 op[i].mem.segment != ZYDIS_REGISTER_FS)
				add_reference(ret->addresses, &ret->address_count, d);
		}
	}
	free(code);
	return r < 0 ? r : 0;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

/* Reads a table of functions. Returns false if it is not one, or if they do not lie within MAX_LOOP
 * bytes. */
static bool read_table(struct elfview *im, uint64_t address, struct tails *ret)
{
	uint64_t words[TABLE], start, end;

	ret->count = 0;
	if (address % 8 || elfview_words(im, address, words, TABLE) != 0)
		return false;
	qsort(words, TABLE, sizeof(words[0]), by_address);
	if (words[0] == 0 || words[TABLE - 1] - words[0] > MAX_LOOP)
		return false;
	for (uint32_t i = 0; i < TABLE; i++) {
		if (i > 0 && words[i] == words[i - 1])
			continue;
		if (elfview_function(im, words[i], &start, &end) != 0 || start != words[i])
			return false;
		add_tail(ret, start, end);
	}
	return ret->count >= TABLE_DISTINCT;
}

static int find_table(struct elfview *im, const struct runtime_range *eval, struct tails *ret)
{
	struct references own = { 0 }, of_callees = { 0 };
	uint64_t start, end;
	int r = find_references(im, eval->start, eval->end, MAX_ENTRY, &own);

	for (uint32_t i = 0; r == 0 && i < own.callee_count; i++)
		if (elfview_function(im, own.callees[i], &start, &end) == 0 &&
		    start == own.callees[i])
			r = find_references(im, start, end, MAX_ENTRY, &of_callees);
	for (uint32_t i = 0; i < own.address_count; i++)
		if (read_table(im, own.addresses[i], ret))
			return r;
	for (uint32_t i = 0; i < of_callees.address_count; i++)
		if (read_table(im, of_callees.addresses[i], ret))
			return r;
	ret->count = 0;
	return r;
}

/* Whether most of a table's addresses lie in this code. The others may lie in parts that were moved
 * out of it. */
static bool read_places(struct elfview *im, uint64_t address, const struct runtime_range *code)
{
	uint64_t words[TABLE], start, end;
	uint32_t within = 0, distinct = 0;

	if (address % 8 || elfview_words(im, address, words, 1) != 0 ||
	    elfview_function(im, words[0], &start, &end) != 0 ||
	    elfview_words(im, address, words, TABLE) != 0)
		return false;
	qsort(words, TABLE, sizeof(words[0]), by_address);
	for (uint32_t i = 0; i < TABLE; i++) {
		distinct += i == 0 || words[i] != words[i - 1];
		if (words[i] != code->start && holds(code, words[i]))
			within++;
		else if (elfview_function(im, words[i], &start, &end) != 0)
			return false;
	}
	return within >= TABLE / 2 && distinct >= TABLE_DISTINCT;
}

int python_has_table(struct elfview *im, const struct runtime_range *code)
{
	struct references own = { 0 };
	int r = find_references(im, code->start, code->end, MAX_LOOP, &own);

	for (uint32_t i = 0; r == 0 && i < own.address_count; i++)
		if (read_places(im, own.addresses[i], code))
			return 0;
	return r < 0 ? r : SYMFILE_NONE;
}

int python_has_tails(struct elfview *im, const struct runtime_range *code)
{
	struct tails tails = { .count = 0 };
	int r = find_table(im, code, &tails);

	return r < 0 ? r : tails.count > 0 ? 0 : SYMFILE_NONE;
}

int python_find_loop(struct elfview *im, const struct elfview_symbol *eval,
		     struct runtime_range ret[static RUNTIME_RANGES], uint32_t *ret_count)
{
	struct runtime_range whole = { .start = eval->value, .end = eval->value + eval->size };
	struct pieces p = { .at = ret };
	struct tails tails = { .count = 0 };
	int r;

	if (eval->size == 0 && elfview_function(im, eval->value, &whole.start, &whole.end) != 0)
		whole.end = whole.start + 1;
	add_piece(&p, whole.start, whole.end);
	r = elfview_symbols(im, false, "_PyEval_EvalFrameDefault.", add_symbol, &p);
	if (r == 0)
		r = elfview_symbols(im, false, "_TAIL_CALL_", add_named_tail, &tails);
	if (r != -ENOMEM && tails.count == 0)
		r = find_table(im, &whole, &tails);
	if (r == 0)
		add_tails(&p, &tails);
	if (r != -ENOMEM && p.count == 1)
		r = find_pieces(im, &whole, &p);
	*ret_count = p.count;
	return r == -ENOMEM ? r : 0;
}
