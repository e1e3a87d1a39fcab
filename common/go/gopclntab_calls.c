/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads inlined calls. Go changed their layout and the numbers of their pcdata and funcdata, also
 * within one format. So this file tries each known layout on some functions of the program, and
 * uses the one in which all of them are plausible. If a later Go changes the layout again, only
 * inlined calls are lost.
 */
#include <errno.h>
#include <string.h>
#include "common/go/gopclntab_internal.h"

#define MAX_DEPTH 256u	     /* of nested inlined calls */
#define LAYOUT_FUNCTIONS 16u /* functions whose inlined calls must be plausible */
#define LAYOUT_LOOKED 16384u /* functions searched for these */
#define LAYOUT_CALLS 64u     /* inlined calls of one function */
#define LAYOUT_STEPS (8u << 20)
#define CALL_STEPS (2u << 20) /* steps through tables of values, for the calls at one address */
#define FIRST_POINTER 24u     /* word of the module data after the known ones */

/* Finds the address of funcdata `index`. Returns 0 or GOPCLNTAB_NONE. */
static int funcdata_of(struct gopclntab *t, const struct gopclntab_func *f, uint32_t index,
		       uint64_t *ret)
{
	uint64_t at = f->data + (uint64_t)f->npcdata * 4;
	struct gopclntab_region table = { .offset = t->offset, .size = t->size };
	uint32_t offset;
	int r;

	if (index >= f->nfuncdata)
		return GOPCLNTAB_NONE;
	if (t->format < GOPCLNTAB_1_18) {
		uint64_t in = at - t->offset; /* aligned as an address would be, counted from the
					       * header */

		in = (in + 7) & ~7ull;
		r = gopclntab_word(t, t->offset + in + (uint64_t)index * 8, ret);
		return r ? r : *ret ? 0 : GOPCLNTAB_NONE;
	}
	r = gopclntab_fetch_in(t, table, at - t->offset + (uint64_t)index * 4, &offset, 4);
	if (r)
		return r;
	if (offset == UINT32_MAX)
		return GOPCLNTAB_NONE;
	*ret = t->gofunc + offset;
	return 0;
}

struct inlined {
	int32_t parent; /* before 1.20 */
	int32_t file, line;
	uint32_t name, start_line;
	uint32_t at; /* from 1.12 on: offset of an instruction at the call */
};

static size_t inlined_size(const struct gopclntab_inline *l)
{
	return l->kind == GOPCLNTAB_INLINE_1_12 ? 20 : 16;
}

static int fetch_inlined(struct gopclntab *t, const struct gopclntab_inline *l, uint64_t tree,
			 uint32_t index, struct inlined *ret)
{
	uint64_t offset, left, vaddr;
	uint8_t bytes[20];
	size_t size = inlined_size(l);
	struct inlined c = { 0 };
	int16_t parent;
	int r;

	if (__builtin_add_overflow(tree, (uint64_t)index * size, &vaddr) ||
	    !gopclntab_locate(t, vaddr, &offset, &left) || left < size)
		return GOPCLNTAB_MALFORMED;
	r = gopclntab_fetch(t, offset, bytes, size);
	if (r)
		return r;
	if (l->kind == GOPCLNTAB_INLINE_1_20) {
		memcpy(&c.name, bytes + 4, 4);
		memcpy(&c.at, bytes + 8, 4);
		memcpy(&c.start_line, bytes + 12, 4);
	} else {
		memcpy(&parent, bytes, 2);
		c.parent = parent;
		memcpy(&c.file, bytes + 4, 4);
		memcpy(&c.line, bytes + 8, 4);
		memcpy(&c.name, bytes + 12, 4);
		if (l->kind == GOPCLNTAB_INLINE_1_12)
			memcpy(&c.at, bytes + 16, 4);
	}
	*ret = c;
	return 0;
}

/* Whether a name begins at an offset: a first byte, after the end of another name. */
static bool is_name(struct gopclntab *t, uint32_t name)
{
	uint8_t bytes[2];

	return name > 0 && gopclntab_fetch_in(t, t->names, name - 1, bytes, 2) == 0 &&
	       bytes[0] == 0 && bytes[1] > ' ' && bytes[1] != 0x7f;
}

static bool makes_sense(struct gopclntab *t, const struct gopclntab_inline *l,
			const struct gopclntab_func *f, const struct inlined *c, uint32_t index)
{
	char path[2];
	int r;

	/* From 1.16 on, the first name has offset 0. */
	if (!is_name(t, c->name) && (c->name != 0 || t->format == GOPCLNTAB_1_2))
		return false;
	if (l->kind != GOPCLNTAB_INLINE_1_9 && c->at >= f->end - f->entry)
		return false;
	if (l->kind == GOPCLNTAB_INLINE_1_20)
		return c->start_line < 1u << 24;
	if (c->parent < -1 || c->parent == (int32_t)index || c->line < 0 || c->line >= 1 << 24)
		return false;
	r = gopclntab_file(t, f, c->file, path, sizeof(path));
	return r == 0;
}

/* Finds the highest value of a table. Values below -1 are invalid. */
static int highest(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
		   uint32_t *steps, int32_t *ret)
{
	struct gopclntab_values v;
	uint64_t start, end;
	int32_t value;
	int r;

	*ret = -1;
	gopclntab_values(t, f, table, &v);
	for (r = gopclntab_next(&v, &start, &end, &value); r == 0;
	     r = gopclntab_next(&v, &start, &end, &value)) {
		if (value < -1 || *steps == 0)
			return GOPCLNTAB_MALFORMED;
		--*steps;
		*ret = value > *ret ? value : *ret;
	}
	return r == GOPCLNTAB_NONE ? 0 : r;
}

/* Whether the inlined calls of some functions are plausible in this layout. */
static bool layout_fits(struct gopclntab *t, const struct gopclntab_inline *l, uint32_t *steps)
{
	unsigned good = 0;

	for (uint32_t i = 0; i < t->count && i < LAYOUT_LOOKED && good < LAYOUT_FUNCTIONS; i++) {
		struct gopclntab_func f;
		uint64_t tree;
		uint32_t table;
		int32_t most;

		if (gopclntab_func(t, i, &f) != 0 || funcdata_of(t, &f, l->funcdata, &tree) != 0 ||
		    gopclntab_pcdata(t, &f, l->pcdata, &table) != 0 || table == 0)
			continue;
		if (highest(t, &f, table, steps, &most) != 0)
			return false;
		if (most < 0)
			continue;
		for (int32_t k = 0; k <= most && k < (int32_t)LAYOUT_CALLS; k++) {
			struct inlined c;

			if (fetch_inlined(t, l, tree, (uint32_t)k, &c) != 0 ||
			    !makes_sense(t, l, &f, &c, (uint32_t)k))
				return false;
		}
		good++;
	}
	return good > 0;
}

/* Finds go:func.*: tries the word of the module data that usually holds it, then all words. */
static bool gofunc_fits(struct gopclntab *t, const struct gopclntab_inline *l, uint32_t *steps)
{
	unsigned usual = t->format == GOPCLNTAB_1_18 ? 38 : 40;

	if (t->module_words == 0)
		return false;
	for (unsigned i = FIRST_POINTER - 1; i < t->module_words; i++) {
		unsigned word = i < FIRST_POINTER ? usual : i;
		uint64_t offset, left;

		if (word >= t->module_words ||
		    !gopclntab_locate(t, t->module[word], &offset, &left))
			continue;
		t->gofunc = t->module[word];
		if (layout_fits(t, l, steps))
			return true;
	}
	return false;
}

static void find_inlined(struct gopclntab *t)
{
	/* In this order: Go 1.13 to 1.15, 1.12, 1.9 to 1.11. */
	static const struct gopclntab_inline old[] = {
		{ GOPCLNTAB_INLINE_1_12, 2, 4 },
		{ GOPCLNTAB_INLINE_1_12, 1, 2 },
		{ GOPCLNTAB_INLINE_1_9, 1, 2 },
	};
	static const struct gopclntab_inline middle = { GOPCLNTAB_INLINE_1_12, 2, 3 };
	static const struct gopclntab_inline latest = { GOPCLNTAB_INLINE_1_20, 2, 3 };
	uint32_t steps = LAYOUT_STEPS;

	t->inline_tried = true;
	switch (t->format) {
	case GOPCLNTAB_1_2:
		for (size_t i = 0; i < sizeof(old) / sizeof(old[0]) && !t->inline_known; i++) {
			t->inlined = old[i];
			t->inline_known = layout_fits(t, &old[i], &steps);
		}
		break;
	case GOPCLNTAB_1_16:
		t->inlined = middle;
		t->inline_known = layout_fits(t, &middle, &steps);
		break;
	case GOPCLNTAB_1_18:
	case GOPCLNTAB_1_20:
		t->inlined = t->format == GOPCLNTAB_1_18 ? middle : latest;
		t->inline_known = gofunc_fits(t, &t->inlined, &steps);
		break;
	}
}

static void position(struct gopclntab *t, const struct gopclntab_func *f, uint64_t address,
		     uint32_t *steps, struct gopclntab_call *c)
{
	int32_t value;

	c->file = gopclntab_value_within(t, f, f->pcfile, address, steps, &value) == 0 ? value : -1;
	c->line = gopclntab_value_within(t, f, f->pcln, address, steps, &value) == 0 && value > 0
			  ? (uint32_t)value
			  : 0;
}

int gopclntab_calls(struct gopclntab *t, const struct gopclntab_func *f, uint64_t address,
		    struct gopclntab_call *calls, unsigned max)
{
	struct gopclntab_call at = { 0 };
	unsigned count = 0;
	uint64_t tree = 0;
	uint32_t table = 0, steps = CALL_STEPS;
	int32_t index;
	bool has;

	if (max == 0)
		return -EINVAL;
	position(t, f, address, &steps, &at);
	if (!t->inline_tried)
		find_inlined(t);
	has = t->inline_known && gopclntab_pcdata(t, f, t->inlined.pcdata, &table) == 0 && table &&
	      funcdata_of(t, f, t->inlined.funcdata, &tree) == 0 &&
	      gopclntab_value_within(t, f, table, address, &steps, &index) == 0;
	for (unsigned depth = 0; has && index >= 0 && depth < MAX_DEPTH; depth++) {
		struct inlined c;

		if (fetch_inlined(t, &t->inlined, tree, (uint32_t)index, &c) != 0)
			break;
		at.name = c.name;
		at.start_line = c.start_line;
		if (count == max - 1 && count > 0)
			memmove(calls, calls + 1, --count * sizeof(*calls));
		if (count < max - 1)
			calls[count++] = at;
		at.start_line = 0;
		if (t->inlined.kind == GOPCLNTAB_INLINE_1_20) {
			/* In damaged data, a call could refer to itself repeatedly, until
			 * MAX_DEPTH. */
			if (c.at >= f->end - f->entry)
				break;
			position(t, f, f->entry + c.at, &steps, &at);
			if (gopclntab_value_within(t, f, table, f->entry + c.at, &steps, &index) !=
			    0)
				break;
		} else {
			at.file = c.file;
			at.line = c.line > 0 ? (uint32_t)c.line : 0;
			index = c.parent;
		}
	}
	at.name = f->name;
	at.start_line = f->start_line;
	calls[count++] = at;
	return (int)count;
}
