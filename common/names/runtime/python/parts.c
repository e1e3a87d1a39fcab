/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the parts of a CPython without symbols by the texts that its functions refer to: error
 * messages of the loop, of PyGILState_Ensure() and of PyGILState_Release(), and the name
 * co_argcount. Code that refers to a text is a function of .eh_frame_hdr, or a piece that the
 * compiler moved out of one; then the function jumps to that piece.
 *
 * The checks are strict, since a wrong answer gives wrong names. The loop must have a table of 256
 * addresses, most of which lie in the loop. _PyRuntime must have its cookie, or objects must have
 * the layout of their version.
 */
#include <errno.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"
#include "common/names/runtime/python/python.h"

#define MAX_RODATA (32u << 20)
#define MAX_TEXT (64u << 20)
#define CHUNK (64u << 10)
#define TEXTS 5
#define OWNERS 8 /* functions that refer to a text, or jump to such code */
#define MAX_LOOKUPS 256
#define POINTERS 16 /* to a text */
#define TYPE_INT 1  /* of PyMemberDef: T_INT; next line: READONLY */
#define READ_ONLY 1

enum text { BUILD_CLASS, NO_LOCALS, ENSURE, RELEASE, EVAL /* EVAL: may be missing */ };

static const char *const texts[TEXTS] = {
	[BUILD_CLASS] = "__build_class__ not found",
	[NO_LOCALS] = "no locals when deleting %R",
	[ENSURE] = "Couldn't create thread-state for new thread",
	[RELEASE] = "auto-releasing thread-state, but no thread-state for this thread",
	[EVAL] = "_PyEval_EvalFrameDefault",
};

/* Pieces of code that refer to something; each has one FDE. */
struct owners {
	struct runtime_range at[OWNERS];
	uint32_t count, lookups;
};

/* A search in .text for 4 bytes that refer to an address between low and high. */
struct parts_search {
	struct elfview *im;
	uint64_t low, high;
	void (*each)(void *ctx, uint64_t pc, const uint8_t *code, uint64_t target);
	void *ctx;
};

static bool in_range(const struct runtime_range *r, uint64_t pc)
{
	return pc >= r->start && pc < r->end;
}

static void add_owner(struct owners *o, struct elfview *im, uint64_t pc)
{
	struct runtime_range r;
	uint64_t start, end;

	for (uint32_t i = 0; i < o->count; i++)
		if (in_range(&o->at[i], pc))
			return;
	if (o->count == OWNERS || o->lookups++ == MAX_LOOKUPS ||
	    elfview_function(im, pc, &start, &end) != 0)
		return;
	r = (struct runtime_range){ .start = start, .end = end };
	o->at[o->count++] = r;
}

/* --- texts --- */

/* Returns the address of this string; 0: there is none. */
static uint64_t find_string(const struct symfile_section *s, const uint8_t *bytes, const char *what)
{
	size_t len = strlen(what) + 1;
	const uint8_t *end = bytes + s->size, *at = memmem(bytes, s->size, what, len);

	while (at) {
		if (at == bytes || at[-1] == '\0')
			return s->addr + (uint64_t)(at - bytes);
		at++;
		at = memmem(at, (size_t)(end - at), what, len);
	}
	return 0;
}

/* Finds the texts. Returns 0, SYMFILE_NONE or another enum symfile_verdict, or -ENOMEM. */
static int find_texts(struct elfview *im, uint64_t ret[static TEXTS], uint64_t *ret_argcount)
{
	const struct symfile_section *s;
	uint8_t *bytes;
	int r = symfile_section(im->file, ".rodata", &s);

	if (r || s->type == SHT_NOBITS || s->size > MAX_RODATA || s->size > symfile_size(im->file))
		return SYMFILE_NONE;
	bytes = malloc(s->size);
	if (!bytes)
		return -ENOMEM;
	r = symfile_read(im->file, s->offset, bytes, s->size);
	for (int i = 0; r == 0 && i < TEXTS; i++)
		ret[i] = find_string(s, bytes, texts[i]);
	if (r == 0)
		*ret_argcount = find_string(s, bytes, "co_argcount");
	free(bytes);
	return r;
}

/* --- code --- */

/* Calls `each` where 4 bytes are an address in the range, or the distance to one. */
static int search_code(const struct parts_search *w)
{
	const struct symfile_section *s;
	uint64_t range = w->high - w->low;
	uint8_t *code;
	int r = symfile_section(w->im->file, ".text", &s);

	if (r || s->type == SHT_NOBITS || s->size > MAX_TEXT)
		return SYMFILE_NONE;
	code = malloc(CHUNK + 8);
	if (!code)
		return -ENOMEM;
	/* Chunks overlap by the two bytes before the 4, which identify the instruction, and three
	 * after. */
	for (uint64_t from = 0; r == 0 && from + 6 <= s->size; from += CHUNK) {
		uint64_t left = s->size - from;
		size_t n = numbers_smaller(left, CHUNK + 5);

		r = symfile_read(w->im->file, s->offset + from, code, n);
		for (size_t i = 2; r == 0 && i + 4 <= n; i++) {
			uint64_t pc = s->addr + from + i;
			int32_t d;

			memcpy(&d, code + i, sizeof(d));
			if (pc + 4 + (uint64_t)(int64_t)d - w->low <= range)
				w->each(w->ctx, pc, code + i, pc + 4 + (uint64_t)(int64_t)d);
			if ((uint32_t)d - w->low <= range)
				w->each(w->ctx, pc, code + i, (uint32_t)d);
		}
	}
	free(code);
	return r;
}

struct text_owners {
	struct elfview *im;
	const uint64_t *texts;
	struct owners of[TEXTS];
};

static void note_text(void *ctx, uint64_t pc, const uint8_t *code, uint64_t target)
{
	struct text_owners *t = ctx;

	for (int i = 0; i < TEXTS; i++)
		if (t->texts[i] && t->texts[i] == target)
			add_owner(&t->of[i], t->im, pc);
}

/* Collects functions with jumps into these pieces: jmp (e9), and jcc (0f 80 to 8f). */
struct jumps {
	struct elfview *im;
	const struct owners *into;
	struct owners from;
};

static void note_jump(void *ctx, uint64_t pc, const uint8_t *code, uint64_t target)
{
	struct jumps *j = ctx;

	if (code[-1] != 0xe9 && (code[-2] != 0x0f || (code[-1] & 0xf0) != 0x80))
		return;
	for (uint32_t i = 0; i < j->into->count; i++) {
		const struct runtime_range *r = &j->into->at[i];

		if (in_range(r, target) && !in_range(r, pc))
			add_owner(&j->from, j->im, pc);
	}
}

/* Adds the functions that jump into these pieces. */
static int add_jumping(struct elfview *im, struct owners *o)
{
	struct jumps j = { .im = im, .into = o };
	struct parts_search w = { .im = im, .each = note_jump, .ctx = &j, .low = UINT64_MAX };
	int r;

	for (uint32_t i = 0; i < o->count; i++) {
		w.low = numbers_smaller(o->at[i].start, w.low);
		w.high = numbers_larger(o->at[i].end, w.high);
	}
	if (o->count == 0)
		return 0;
	r = search_code(&w);
	for (uint32_t i = 0; r == 0 && i < j.from.count; i++)
		add_owner(o, im, j.from.at[i].start);
	return r;
}

/* --- the loop --- */

static bool in_owners(const struct owners *o, const struct runtime_range *ranges, uint32_t count)
{
	for (uint32_t i = 0; i < o->count; i++) {
		bool found = false;

		for (uint32_t j = 0; j < count; j++)
			found |= o->at[i].start >= ranges[j].start && o->at[i].end <= ranges[j].end;
		if (found)
			return true;
	}
	return false;
}

static struct elfview_symbol symbol_of(const struct runtime_range *r)
{
	return (struct elfview_symbol){ .value = r->start,
					.size = r->end - r->start,
					.type = STT_FUNC };
}

/* Finds the piece that contains the loop's table. */
static int with_table(struct elfview *im, const struct owners *o, struct elfview_symbol *ret)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < o->count; i++) {
		int r = python_has_table(im, &o->at[i]);

		if (r < 0)
			return r;
		if (r == 0 && found++ == 0)
			*ret = symbol_of(&o->at[i]);
	}
	return found == 1 ? 0 : SYMFILE_NONE;
}

/* Checks that both of the loop's texts are used in the code that was found. */
static int check_loop(struct elfview *im, const struct text_owners *t,
		      const struct elfview_symbol *eval)
{
	struct runtime_range loop[RUNTIME_RANGES];
	uint32_t count = 0;
	int r = python_find_loop(im, eval, loop, &count);

	if (r == 0 && (!in_owners(&t->of[BUILD_CLASS], loop, count) ||
		       !in_owners(&t->of[NO_LOCALS], loop, count)))
		r = SYMFILE_NONE;
	return r;
}

/* For a tail-calling loop: its functions use the loop's texts, and the function that enters it uses
 * its name. */
static int find_eval_of_tails(struct elfview *im, const struct text_owners *t,
			      struct elfview_symbol *ret)
{
	const struct owners *o = &t->of[EVAL];
	uint32_t found = 0;

	for (uint32_t i = 0; i < o->count; i++) {
		int r = python_has_tails(im, &o->at[i]);

		if (r < 0)
			return r;
		if (r == 0 && found++ == 0)
			*ret = symbol_of(&o->at[i]);
	}
	return found == 1 ? 0 : SYMFILE_NONE;
}

static int find_eval(struct elfview *im, const struct text_owners *t, struct elfview_symbol *ret)
{
	struct owners all = t->of[BUILD_CLASS];
	int r = with_table(im, &all, ret);

	/* A piece that was moved out may use the text: try the functions that jump to it. */
	if (r == SYMFILE_NONE) {
		r = add_jumping(im, &all);
		if (r == 0)
			r = with_table(im, &all, ret);
	}
	if (r == SYMFILE_NONE)
		r = find_eval_of_tails(im, t, ret);
	return r ? r : check_loop(im, t, ret);
}

/* --- data --- */

/* Finds _PyRuntime by its cookie, at the beginning of .PyRuntime or in .data. */
static uint64_t find_runtime(struct elfview *im)
{
	static const char cookie[8] = "xdebugpy";
	const struct symfile_section *s;
	uint64_t words[CHUNK / 8 / 8], at = 0;

	if (symfile_section(im->file, ".PyRuntime", &s) == 0)
		return s->addr;
	if (symfile_section(im->file, ".data", &s) != 0 || s->type == SHT_NOBITS ||
	    s->size > MAX_RODATA)
		return 0;
	for (uint64_t from = 0; !at && from + 8 <= s->size; from += sizeof(words)) {
		uint64_t left = s->size - from;
		size_t n = left < sizeof(words) ? (size_t)left & ~7ull : sizeof(words);

		if (symfile_read(im->file, s->offset + from, words, n) != 0)
			return 0;
		for (size_t i = 0; !at && i < n / 8; i++)
			if (memcmp(&words[i], cookie, sizeof(cookie)) == 0)
				at = s->addr + from + i * 8;
	}
	return at;
}

/* Returns the offset of co_argcount, from the type of code objects. 0: not found. */
static uint64_t find_argcount(struct elfview *im, uint64_t text)
{
	uint64_t at[POINTERS], member[4];
	size_t count = 0;

	if (!text || elfview_pointers(im, text, at, POINTERS, &count) != 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (elfview_words(im, at[i], member, 4) == 0 && (uint32_t)member[1] == TYPE_INT &&
		    (uint32_t)member[3] == READ_ONLY && member[2] % 4 == 0 && member[2] < 256)
			return member[2];
	return 0;
}

/* Finds the thread state, if these functions agree on it. */
static int state_of(struct elfview *im, const struct owners *o, unsigned minor,
		    struct python_config *ret)
{
	struct python_config c;
	uint32_t found = 0;

	for (uint32_t i = 0; i < o->count; i++) {
		c = (struct python_config){ 0 };
		if (!python_follow_use(im, o->at[i].start, minor, &c))
			continue;
		if (found++ > 0 &&
		    (c.thread != ret->thread || c.state != ret->state || c.tls_add != ret->tls_add))
			return SYMFILE_NONE;
		*ret = c;
	}
	return found ? 0 : SYMFILE_NONE;
}

/* Whether the key's address is one of the program's variables. */
static bool is_variable(struct elfview *im, uint64_t address)
{
	static const char *const names[] = { ".data", ".bss", ".PyRuntime" };
	const struct symfile_section *s;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (symfile_section(im->file, names[i], &s) == 0 && address >= s->addr &&
		    address - s->addr < s->size)
			return true;
	return false;
}

static int find_state(struct elfview *im, struct text_owners *t, unsigned minor,
		      struct python_config *ret)
{
	struct python_config c[2] = { { 0 }, { 0 } };

	for (int i = 0; i < 2; i++) {
		struct owners *o = &t->of[ENSURE + i];
		int r = state_of(im, o, minor, &c[i]);

		/* As in find_eval: a piece that was moved out may use the text. */
		if (r == SYMFILE_NONE)
			r = add_jumping(im, o);
		if (r == 0 && c[i].state == 0)
			r = state_of(im, o, minor, &c[i]);
		if (r)
			return r;
	}
	if (c[0].thread != c[1].thread || c[0].state != c[1].state ||
	    c[0].tls_add != c[1].tls_add ||
	    (c[0].thread == PYTHON_TSD && !is_variable(im, c[0].state)))
		return SYMFILE_NONE;
	*ret = c[0];
	return 0;
}

int python_find_parts(struct elfview *im, unsigned minor, struct python_parts *ret)
{
	uint64_t at[TEXTS], argcount, low = UINT64_MAX, high = 0;
	struct text_owners t = { .im = im, .texts = at };
	struct parts_search w = { .im = im, .each = note_text, .ctx = &t };
	struct python_parts p = { .runtime = 0 };
	int r = find_texts(im, at, &argcount);

	if (r)
		return r;
	for (int i = 0; i < TEXTS; i++) {
		if (!at[i] && i == EVAL)
			continue;
		if (!at[i])
			return SYMFILE_NONE;
		low = at[i] < low ? at[i] : low;
		high = at[i] > high ? at[i] : high;
	}
	w.low = low;
	w.high = high;
	r = search_code(&w);
	for (int i = 0; r == 0 && i < EVAL; i++)
		r = t.of[i].count > 0 && t.of[i].count < OWNERS ? 0 : SYMFILE_NONE;
	if (r == 0)
		r = find_eval(im, &t, &p.eval);
	if (r == 0)
		r = find_state(im, &t, minor, &p.state);
	if (r)
		return r;
	p.runtime = find_runtime(im);
	p.argcount = find_argcount(im, argcount);
	*ret = p;
	return 0;
}
