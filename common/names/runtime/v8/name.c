/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names an object from the copy that the walk made (bpf/v8/v8.h): the function's name, its script,
 * and the line of each position.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/unaligned.h"
#include "common/base/text/percent.h"
#include "common/base/text/utf8.h"
#include "common/names/runtime/v8/v8.h"

#define FILE_SCHEME "file://"

/* The facts about one function that the copy contains. */
struct function {
	uint64_t told[V8_TOLD_WORDS];
	struct object_memory *memory;
	struct span ends; /* the ends of lines as Smis, or the script's text */
	bool all_ends;	  /* no end of a line is missing */
	size_t counted;	  /* bytes of the text in which `lines` lines end */
	uint32_t lines;
	unsigned kind_shift;
	struct runtime_text name, source;
};

/* Returns as much as was copied of a piece of `size` bytes, at most `most`. */
static struct span piece(struct object_memory *m, uint64_t address, uint64_t size, uint32_t most)
{
	return object_memory_have(m, address, size < most ? (uint32_t)size : most);
}

/* --- texts --- */

/* Appends text in Latin-1, or in UTF-16 if `wide`. */
static void append_text(struct runtime_text *t, struct span text, bool wide)
{
	uint32_t high = 0;

	for (size_t i = 0; i + wide < text.len; i += 1 + wide) {
		uint32_t c = text.data[i];

		if (wide)
			c |= (uint32_t)text.data[i + 1] << 8;
		if (c >= 0xd800 && c < 0xdc00) {
			high = c;
			continue;
		}
		if (high && c >= 0xdc00 && c < 0xe000)
			c = 0x10000 + ((high & 0x3ff) << 10) + (c & 0x3ff);
		high = 0;
		runtime_append_character(t, c < ' ' || c == 0x7f ? '?' : c);
	}
}

/* Turns the URL of a module into a path. */
static void make_path(struct runtime_text *t)
{
	const size_t scheme = strlen(FILE_SCHEME);
	uint32_t n = 0;

	if (t->len < scheme || memcmp(t->bytes, FILE_SCHEME, scheme) != 0)
		return;
	for (size_t i = scheme; i < t->len;) {
		const char c = percent_next(t->bytes, t->len, &i);

		t->bytes[n++] = c >= 0 && c < ' ' ? '?' : c;
	}
	t->len = n;
}

/* --- one function --- */

/* Names functions that a class has without any in its text, and those without a name. */
static void name_by_kind(struct runtime_text *name, unsigned kind)
{
	/* V8 14.6 has two kinds of static initializers. */
	const char *s = kind == 24		   ? "<instance_members_initializer>"
			: kind == 25 || kind == 26 ? "<static_initializer>"
						   : "(anonymous)";

	if (kind >= 24 && kind <= 26)
		name->len = 0;
	if (!name->len)
		runtime_append(name, s, strlen(s));
}

static bool is(const struct function *f, unsigned shape)
{
	return f->told[V8_TOLD_SHAPES] >> shape & 1;
}

/* Appends a text of several parts, with a mark where something is missing. what, most, shape: of
 * the first of its parts; first: where the first part is told. */
static void append_parts(struct runtime_text *t, const struct function *f, unsigned what,
			 uint32_t most, unsigned shape, unsigned parts, unsigned first)
{
	const unsigned begin = (unsigned)(f->told[V8_TOLD_SHAPES] >> first & 3);

	for (unsigned i = 0; i < parts; i++) {
		const unsigned k = (begin + i) % parts, at = what + 2 * k;
		const uint64_t size = f->told[at + 1];

		if (is(f, V8_SHAPE_HEADLESS + shape + k))
			runtime_append(t, "...", strlen("..."));
		append_text(t, piece(f->memory, f->told[at], size, most), is(f, shape + k));
		if (size > most || is(f, V8_SHAPE_CUT + shape + k))
			runtime_append(t, "...", strlen("..."));
	}
}

/* Names code that is not JavaScript. A function of WebAssembly has its name, in UTF-8, or its
 * number as in V8's tracebacks. */
static void name_other(struct function *f)
{
	const uint64_t size = f->told[V8_TOLD_NAME_SIZE];
	const struct span name = piece(f->memory, f->told[V8_TOLD_NAME], size, V8_NAME_BYTES);
	const bool wasm = f->told[V8_TOLD_KIND] == V8_WASM;
	char text[32] = "";

	for (size_t i = 0, n; i < name.len; i += n ? n : 1) {
		uint32_t c = UTF8_REPLACEMENT;

		n = utf8_decode(name.data + i, name.len - i, &c);
		runtime_append_character(&f->name, c < ' ' || c == 0x7f ? '?' : c);
	}
	if (size > name.len)
		runtime_append(&f->name, "...", strlen("..."));
	if (!size && wasm && f->told[V8_TOLD_RANGE] < V8_NO_NUMBER)
		snprintf(text, sizeof(text), "wasm-function[%" PRIu32 "]",
			 (uint32_t)f->told[V8_TOLD_RANGE]);
	else if (!size)
		snprintf(text, sizeof(text), "%s", wasm ? "wasm-function" : "(regexp)");
	runtime_append(&f->name, text, strlen(text));
	if (wasm)
		runtime_append(&f->source, "[wasm]", strlen("[wasm]"));
}

static int read_function(struct object_memory *m, uint64_t address, uint64_t check,
			 unsigned kind_shift, struct function *ret)
{
	const uint8_t *at;
	int r = object_memory_get(m, address, V8_TOLD_WORDS * 8, 0, &at);

	if (r)
		return runtime_verdict(r);

	const uint64_t identity = unaligned_u64(at + V8_TOLD_IDENTITY * 8);

	if (v8_key(identity) != address || v8_check(identity) != check)
		return RUNTIME_GONE;

	const uint64_t *told = ret->told;

	*ret = (struct function){ .memory = m, .kind_shift = kind_shift };
	memcpy(ret->told, at, sizeof(ret->told));
	ret->ends = piece(m, told[V8_TOLD_ENDS], told[V8_TOLD_ENDS_SIZE], V8_ENDS_BYTES);
	ret->all_ends = ret->ends.len == told[V8_TOLD_ENDS_SIZE];
	if (told[V8_TOLD_KIND] == V8_WASM || told[V8_TOLD_KIND] == V8_REGEXP) {
		name_other(ret);
		return 0;
	}
	append_parts(&ret->name, ret, V8_TOLD_NAME, V8_NAME_BYTES, V8_SHAPE_NAME, V8_NAME_PARTS,
		     V8_SHAPE_NAME_FIRST);
	append_parts(&ret->source, ret, V8_TOLD_SCRIPT, V8_SCRIPT_BYTES, V8_SHAPE_SCRIPT,
		     V8_SCRIPT_PARTS, V8_SHAPE_SCRIPT_FIRST);
	make_path(&ret->source);
	/* Text that was made at run time has no file. The path of other text may be unreadable. */
	if (ret->source.len == strlen("...") && memcmp(ret->source.bytes, "...", 3) == 0)
		ret->source.len = 0;
	else if (!ret->source.len)
		runtime_append(&ret->source, "[eval]", strlen("[eval]"));
	name_by_kind(&ret->name, told[V8_TOLD_KIND] >> 32 >> kind_shift & 31);
	return 0;
}

/* Returns how many lines end in a part of the function's text. */
static uint32_t count_lines(const struct function *f, size_t from, size_t to)
{
	const unsigned bytes = is(f, V8_SHAPE_TEXT) ? 2 : 1;
	uint32_t n = 0;

	for (size_t i = from; i < to; i += bytes)
		n += f->ends.data[i] == '\n' && (bytes == 1 || !f->ends.data[i + 1]);
	return n;
}

/* Returns the line of a character in the function's text. Counts from the last one that was asked
 * for, which is mostly near. */
static uint32_t line_in_text(struct function *f, uint32_t character)
{
	const uint32_t start = (uint32_t)f->told[V8_TOLD_RANGE];
	const size_t at = (character - start) * (size_t)(is(f, V8_SHAPE_TEXT) ? 2 : 1);

	if (character < start || at > f->ends.len)
		return 0;
	if (at >= f->counted)
		f->lines += count_lines(f, f->counted, at);
	else
		f->lines -= count_lines(f, at, f->counted);
	f->counted = at;
	return (uint32_t)f->told[V8_TOLD_LINE] + 1 + f->lines;
}

/* Returns the line of a character in the function's script; 0: unknown. */
static uint32_t line_of(struct function *f, uint32_t character)
{
	const uint64_t first = f->told[V8_TOLD_LINE];
	size_t low = 0, high = f->ends.len / 8;

	if (first >= V8_NO_LINE - V8_ENDS_BYTES || character == V8_NO_POSITION)
		return 0;
	if (is(f, V8_SHAPE_IS_TEXT))
		return line_in_text(f, character);
	const size_t count = high;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (unaligned_u64(f->ends.data + middle * 8) >> 32 < character)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count && !f->all_ends)
		return 0;
	return (uint32_t)(first + low + 1);
}

/* --- what each kind of object has --- */

static int add_interpreted(struct function *f, struct v8_positions p, struct runtime_object *ret)
{
	struct v8_position next;
	uint32_t line = (uint32_t)ret->start_line;
	int r = 0;

	if (!p.rest.len)
		return 0; /* V8 has not made the table of positions yet */
	while (!r && v8_positions_next(&p, &next)) {
		r = runtime_add_line(ret, next.code, line);
		line = line_of(f, next.character);
	}
	return r ? r : runtime_add_line(ret, RUNTIME_POSITION_MASK, line);
}

static int add_baseline(struct function *f, const struct v8_naming *n, struct v8_positions p,
			struct runtime_object *ret)
{
	const uint64_t *told = f->told;
	struct v8_baseline b = {
		.naming = n,
		.sizes = piece(f->memory, told[V8_TOLD_EXTRA], told[V8_TOLD_EXTRA_SIZE],
			       V8_EXTRA_BYTES),
		.bytecodes = piece(f->memory, told[V8_TOLD_BYTECODES], told[V8_TOLD_BYTECODES_SIZE],
				   V8_BYTECODES_BYTES),
	};
	struct v8_position next = { 0 };
	bool more = v8_positions_next(&p, &next);
	uint32_t end, bytecode, line = (uint32_t)ret->start_line;
	int r = 0;

	if (!more)
		return 0; /* V8 has not made the table of positions yet */
	while (!r && v8_baseline_next(&b, &end, &bytecode)) {
		for (; more && next.code <= bytecode; more = v8_positions_next(&p, &next))
			line = line_of(f, next.character);
		r = runtime_add_line(ret, end, line);
	}
	return r;
}

/* --- optimized code --- */

#define NESTED 128 /* levels of nested inlined calls */

#define ITSELF (-1)
/* Reads a function that is inlined. ITSELF: the code's own function, which calls itself. Returns 0,
 * or RUNTIME_GONE if it is not known. */
static int read_inlined(const struct function *outer, int32_t number, struct function *ret)
{
	if (number == ITSELF) {
		*ret = *outer;
		return 0;
	}
	if (number < 0 || number >= V8_INLINED_MAX ||
	    (uint32_t)number >= (uint32_t)outer->told[V8_TOLD_INLINED_COUNT])
		return RUNTIME_GONE;

	const uint64_t key = outer->told[V8_TOLD_INLINED + number];
	struct object_memory *m = key ? object_memory_other(outer->memory, key, v8_check(key))
				      : NULL;

	return m ? read_function(m, key, v8_check(key), outer->kind_shift, ret) : RUNTIME_GONE;
}

/* Adds a call of an inlined function, as runtime_add_inlined does. */
static int add_inlined(struct runtime_object *o, uint32_t caller, uint32_t line, struct function *f,
		       uint32_t *ret)
{
	return runtime_add_inlined(o, caller, line, (struct str){ f->name.bytes, f->name.len },
				   (struct str){ f->source.bytes, f->source.len },
				   line_of(f, (uint32_t)f->told[V8_TOLD_RANGE]), ret);
}

/* The inlined calls of optimized code, which appear in the order of its positions. */
struct inlining {
	struct function *outer, *called; /* called: the function of the call that was added last */
	struct span calls; /* 16 bytes each: a raw position, and the function's number */
	uint32_t added[V8_EXTRA_BYTES / 16]; /* 1 + the result of runtime_add_inlined; 0: not added
					      * yet */
	struct runtime_object *ret;
};

/* Reads the function of an inlined call. Returns 0, or RUNTIME_GONE if it is not known. */
static int read_called(const struct inlining *i, uint32_t call, struct function *ret)
{
	int32_t number;

	if (call >= i->calls.len / 16)
		return RUNTIME_GONE;
	memcpy(&number, i->calls.data + (size_t)call * 16 + 8, sizeof(number));
	return read_inlined(i->outer, number, ret);
}

/* Finds the line of a position in inlined call `inlined` (1 + its number; 0: the object itself). */
static int inlined_line(struct inlining *i, struct v8_position p, uint32_t *ret_line)
{
	if (!p.inlined) {
		*ret_line = line_of(i->outer, p.character);
		return 0;
	}
	int r = read_called(i, p.inlined - 1, i->called);

	if (r == 0)
		*ret_line = line_of(i->called, p.character);
	return r;
}

/* Adds an inlined call with its callers. *ret is an argument for runtime_add_line_in. *p becomes
 * the position of the innermost call that is known. */
static int add_call(struct inlining *i, struct v8_position *p, uint32_t *ret)
{
	struct v8_position chain[NESTED];
	uint32_t n = 0, caller = 0, known = 0;
	int r = 0;

	for (struct v8_position at = *p;; n++) {
		if (n == NESTED || at.inlined > i->calls.len / 16)
			return 0;
		chain[n] = at;
		if (!at.inlined)
			break;
		int64_t raw;

		memcpy(&raw, i->calls.data + (size_t)(at.inlined - 1) * 16, sizeof(raw));
		at = v8_position_of(raw);
	}
	/* Go from the outermost call inwards. Stop at a function that is not known: its caller has
	 * the line. */
	for (uint32_t k = n; !r && k-- > 0;) {
		uint32_t *added = &i->added[chain[k].inlined - 1], line;

		if (!*added) {
			r = inlined_line(i, chain[k + 1], &line);
			if (r == 0)
				r = read_called(i, chain[k].inlined - 1, i->called);
			if (r == 0)
				r = add_inlined(i->ret, caller, line, i->called, added);
		}
		if (r == 0) {
			caller = *added;
			known = n - k;
		}
	}
	*p = chain[n - known];
	*ret = caller;
	return r < 0 ? r : 0;
}

/* Where code is: its line, and 1 + its inlined call, or 0. */
struct place {
	uint32_t line, inside;
};

/* Finds the place of one of the code's own positions. */
static int find_own(struct inlining *i, struct v8_position p, struct place *ret)
{
	*ret = (struct place){ 0 };

	const int r = add_call(i, &p, &ret->inside);

	if (!r && inlined_line(i, p, &ret->line) > 0)
		ret->line = 0;
	return r;
}

/* Adds the places to which calls return if V8 has given the code up meanwhile. They are after all
 * code, which ends with the place *end. */
static int add_late_calls(struct inlining *i, struct v8_positions p, struct v8_safepoints s,
			  const struct place *end)
{
	struct place call = { (uint32_t)i->ret->start_line, 0 };
	struct v8_position next;
	struct v8_safepoint point;
	bool more = v8_positions_next(&p, &next);
	uint32_t last = 0;
	int r = 0;

	while (!r && v8_safepoints_next(&s, &point)) {
		for (; !r && more && next.code < point.pc; more = v8_positions_next(&p, &next))
			r = find_own(i, next, &call);
		if (r || point.late == V8_NO_EXIT || point.late <= last || point.late <= point.pc)
			continue;
		last = point.late;
		r = runtime_add_line_in(i->ret, last - 1, end->line, end->inside);
		if (!r)
			r = runtime_add_line_in(i->ret, last, call.line, call.inside);
	}
	return r;
}

static int add_optimized(struct function *f, const struct v8_naming *n, struct v8_positions p,
			 struct runtime_object *ret)
{
	struct function *called = malloc(sizeof(*called));
	struct inlining i = {
		.outer = f,
		.called = called,
		.calls = piece(f->memory, f->told[V8_TOLD_EXTRA], f->told[V8_TOLD_EXTRA_SIZE],
			       V8_EXTRA_BYTES),
		.ret = ret,
	};
	const struct v8_positions all = p;
	struct v8_safepoints s;
	struct v8_position next;
	/* Programs other than Node.js do not make V8 write positions. */
	struct place now = { p.rest.len ? (uint32_t)ret->start_line : 0, 0 };
	int r = called ? 0 : -ENOMEM;

	while (!r && v8_positions_next(&p, &next)) {
		r = runtime_add_line_in(ret, next.code, now.line, now.inside);
		if (!r)
			r = find_own(&i, next, &now);
	}
	if (!r && all.rest.len &&
	    v8_safepoints_begin(&s,
				piece(f->memory, f->told[V8_TOLD_BYTECODES],
				      f->told[V8_TOLD_BYTECODES_SIZE], V8_BYTECODES_BYTES),
				n->safepoints, false))
		r = add_late_calls(&i, all, s, &now);
	if (!r)
		r = runtime_add_line_in(ret, RUNTIME_POSITION_MASK, now.line, now.inside);
	free(called);
	return r;
}

/* --- optimized code whose calls have exits --- */

#define EXIT_BYTES 24 /* the bytecode and where the translation is, Smis, and another word */

/* A frame that the interpreter would have. */
struct lazy_frame {
	int32_t bytecode, function;
	uint32_t line;
	uint32_t added; /* the result of runtime_add_inlined; 0 for the object itself */
};

/* Maps the calls of code to bytecodes, by their exits. */
struct lazy {
	struct function *outer, *called; /* called: the inlined function that was read last */
	struct inlining own;		 /* of the code's own positions */
	const struct v8_naming *naming;
	struct span exits, translations;
	uint32_t eager; /* exits that are not described */
	/* Those of the last exit, since adjacent ones mostly have the same. */
	struct lazy_frame frames[NESTED];
	unsigned frame_count;
	struct runtime_object *ret;
};

/* what: V8_TOLD_POSITIONS or V8_TOLD_OWN_POSITIONS. */
static struct v8_positions positions_at(const struct function *f, const struct v8_naming *n,
					unsigned what)
{
	return (struct v8_positions){
		.rest = piece(f->memory, f->told[what], f->told[what + 1], V8_POSITIONS_BYTES),
		.flags = n->position_flags,
		.before_first = n->before_first,
	};
}

static struct v8_positions positions_of(const struct function *f, const struct v8_naming *n)
{
	return positions_at(f, n, V8_TOLD_POSITIONS);
}

/* Returns the line of a bytecode, or of the function's entry. */
static uint32_t bytecode_line(struct function *f, const struct v8_naming *n, int32_t bytecode)
{
	struct v8_positions p = positions_of(f, n);
	struct v8_position next;
	uint32_t line = line_of(f, (uint32_t)f->told[V8_TOLD_RANGE]);

	if (bytecode >= 0 && !p.rest.len)
		return 0; /* V8 has not made the table of positions yet */
	while (bytecode >= 0 && v8_positions_next(&p, &next) && next.code <= (uint32_t)bytecode)
		line = line_of(f, next.character);
	return line;
}

/* Adds frame k of an exit, whose callers are added. Returns RUNTIME_GONE if its function is not
 * known. */
static int add_lazy_frame(struct lazy *l, unsigned k)
{
	struct lazy_frame *f = &l->frames[k];
	int r = 0;

	f->added = 0;
	if (k) {
		const bool itself = f->function == l->frames[0].function;

		r = read_inlined(l->outer, itself ? ITSELF : f->function, l->called);
		if (!r)
			r = add_inlined(l->ret, f[-1].added, f[-1].line, l->called, &f->added);
	}
	if (!r)
		f->line = bytecode_line(k ? l->called : l->outer, l->naming, f->bytecode);
	return r;
}

/* Finds the frames of an exit. Stops at a function that is not known: its caller has the line. */
static int find_frames(struct lazy *l, uint32_t translation)
{
	struct v8_translation t;
	int32_t bytecode, function;
	unsigned n = 0, same = l->frame_count;
	int r = 0;

	l->frame_count = 0;
	if (!v8_translation_begin(&t, l->naming, l->translations, translation))
		return 0;
	for (; n < NESTED && v8_translation_next(&t, &bytecode, &function); n++) {
		struct lazy_frame *f = &l->frames[n];

		if (n < same && f->bytecode == bytecode && f->function == function)
			continue;
		same = 0;
		*f = (struct lazy_frame){ .bytecode = bytecode, .function = function };
		r = add_lazy_frame(l, n);
		if (r)
			break;
	}
	l->frame_count = n;
	return r < 0 ? r : 0;
}

/* Finds the place of a call, by its exit. Leaves *ret as it is if that does not tell. If the exit's
 * translation was not copied and the code has no inlined functions, the line is that of the exit's
 * own bytecode. This may instead be the number of a builtin that the exit continues with, such as
 * the rest of Array.prototype.map. */
static int find_lazy_call(struct lazy *l, uint32_t exit, struct place *ret)
{
	const uint64_t at = (uint64_t)(exit - l->eager) * EXIT_BYTES;

	if (exit == V8_NO_EXIT || exit < l->eager || at + EXIT_BYTES > l->exits.len)
		return 0;

	const uint8_t *words = l->exits.data + at;
	const int32_t bytecode = (int32_t)(unaligned_u64(words) >> 32);
	const int r = find_frames(l, (uint32_t)(unaligned_u64(words + 8) >> 32));

	if (!r && l->frame_count) {
		const struct lazy_frame *f = &l->frames[l->frame_count - 1];

		*ret = (struct place){ f->line, f->added };
	} else if (!r && !(uint32_t)l->outer->told[V8_TOLD_INLINED_COUNT]) {
		*ret = (struct place){ bytecode_line(l->outer, l->naming, bytecode), 0 };
	}
	return r;
}

/* Adds the code from *last to `end`. */
static int add_place(struct lazy *l, uint32_t end, const struct place *p, uint32_t *last)
{
	if (end <= *last)
		return 0;
	*last = end;
	return runtime_add_line_in(l->ret, end, p->line, p->inside);
}

/* Adds the places to which calls return if V8 has given the code up meanwhile, after all code. */
static int add_late(struct lazy *l, struct v8_safepoints s, const struct place *now, uint32_t *last)
{
	struct v8_safepoint point;
	int r = 0;

	while (!r && v8_safepoints_next(&s, &point)) {
		struct place call = *now;

		if (point.late == V8_NO_EXIT || point.late <= *last)
			continue;
		r = add_place(l, point.late - 1, now, last);
		if (!r)
			r = find_lazy_call(l, point.exit, &call);
		if (!r)
			r = add_place(l, point.late, &call, last);
	}
	return r;
}

/*
 * Each call has the frames and the line that its exit leads to. Of code between calls, Maglev
 * writes some positions; it has the place that a position or a call has last told, and before
 * these the function's first line. If there are no positions, only that line is known, and not even
 * that if other functions are inlined in it.
 */
static int add_places(struct lazy *l, struct v8_positions own, struct v8_safepoints s)
{
	struct v8_safepoints points = s;
	struct v8_safepoint point;
	const bool has_own = own.rest.len > 0,
		   has_inlined = (uint32_t)l->outer->told[V8_TOLD_INLINED_COUNT];
	struct place now = { has_inlined && !has_own ? 0 : (uint32_t)l->ret->start_line, 0 };
	struct v8_position next;
	uint32_t last = 0, before = 0;
	bool is_next = v8_positions_next(&own, &next);
	int r = 0;

	while (!r && v8_safepoints_next(&points, &point) && point.pc > before) {
		for (; !r && is_next && next.code < point.pc;
		     is_next = v8_positions_next(&own, &next)) {
			r = add_place(l, next.code, &now, &last);
			if (!r)
				r = find_own(&l->own, next, &now);
		}

		struct place call = now;

		if (!r)
			r = add_place(l, point.pc - 1, &now, &last);
		if (!r)
			r = find_lazy_call(l, point.exit, &call);
		if (!r)
			r = add_place(l, point.pc, &call, &last);
		if (has_own)
			now = call;
		before = point.pc;
	}
	for (; !r && is_next; is_next = v8_positions_next(&own, &next)) {
		r = add_place(l, next.code, &now, &last);
		if (!r)
			r = find_own(&l->own, next, &now);
	}
	if (!r)
		r = add_late(l, s, &now, &last);
	return r ? r : add_place(l, RUNTIME_POSITION_MASK, &now, &last);
}

static int add_lazy(struct function *f, const struct v8_naming *n, struct runtime_object *ret)
{
	const uint64_t *told = f->told;
	struct function *called = malloc(sizeof(*called));
	struct lazy l = {
		.outer = f,
		.called = called,
		.own = { .outer = f,
			 .called = called,
			 .calls = piece(f->memory, told[V8_TOLD_OWN_CALLS],
					told[V8_TOLD_OWN_CALLS + 1], V8_EXTRA_BYTES),
			 .ret = ret },
		.naming = n,
		.exits = piece(f->memory, told[V8_TOLD_BYTECODES], told[V8_TOLD_BYTECODES_SIZE],
			       V8_BYTECODES_BYTES),
		.translations = piece(f->memory, told[V8_TOLD_TRANSLATIONS],
				      told[V8_TOLD_TRANSLATIONS + 1], V8_TRANSLATIONS_BYTES),
		.eager = (uint32_t)(told[V8_TOLD_INLINED_COUNT] >> 32),
		.ret = ret,
	};
	const struct v8_positions own = positions_at(f, n, V8_TOLD_OWN_POSITIONS);
	struct v8_safepoints s;

	v8_safepoints_begin(
		&s, piece(f->memory, told[V8_TOLD_EXTRA], told[V8_TOLD_EXTRA_SIZE], V8_EXTRA_BYTES),
		n->safepoints, true);

	const int r = called ? add_places(&l, own, s) : -ENOMEM;

	free(called);
	return r;
}

int v8_name(const struct runtime_build *b, uint64_t address, uint64_t check,
	    struct object_memory *m, struct runtime_object *ret)
{
	struct v8_naming n;
	struct function *f = malloc(sizeof(*f));

	memcpy(&n, b->naming, sizeof(n));
	int r = f ? read_function(m, address, check, n.kind_shift, f) : -ENOMEM;

	if (r) {
		free(f);
		return r;
	}
	runtime_append(&ret->system_name, f->name.bytes, f->name.len);
	runtime_append(&ret->name, f->name.bytes, f->name.len);
	runtime_append(&ret->source, f->source.bytes, f->source.len);
	ret->start_line = line_of(f, (uint32_t)f->told[V8_TOLD_RANGE]);

	const struct v8_positions positions = positions_of(f, &n);

	switch ((uint32_t)f->told[V8_TOLD_KIND]) {
	case V8_INTERPRETED:
		r = add_interpreted(f, positions, ret);
		break;
	case V8_BASELINE:
		r = add_baseline(f, &n, positions, ret);
		break;
	case V8_OPTIMIZED:
		r = add_optimized(f, &n, positions, ret);
		break;
	case V8_LAZY:
		r = add_lazy(f, &n, ret);
		break;
	}
	free(f);
	return r;
}
