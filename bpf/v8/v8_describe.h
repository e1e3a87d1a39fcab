/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Describes an object that V8's walk copies (v8.h): its function's names and lines. If V8 has not
 * computed where the script's lines end, the walk counts them in the text.
 */
#ifndef BPF_V8_V8_DESCRIBE_H
#define BPF_V8_V8_DESCRIBE_H

#include "bpf/v8/v8_wasm.h"

/* --- texts --- */

enum v8_text_verdict {
	V8_TEXT_NONE = 0,
	V8_TEXT_FOUND = 1,
	V8_TEXT_GOES_ON = 2, /* the string refers to p->part, which must be looked at next */
};

/* Whether a string has characters. */
ENV_INLINE bool v8_has_length(const struct v8_walk *p, __u64 string)
{
	__u64 word = 0;

	return v8_is_pointer(string) && v8_length(p, string, &word) && word >> 32 > 0;
}

/* Looks at the string p->part. A separate function: old verifiers refuse such a loop. */
ENV_FUNCTION __u32 v8_text_step(V8_PARAMETERS)
{
	V8_FIND(w, p);
	__u64 string = p->part, word = 0;
	__u32 type = v8_type(p, string), shape = type & V8_STRING_SHAPE;
	const __u32 first = v8_characters(p);

	(void)w;
	if (!v8_is_pointer(string) || type >= p->config.type_no_string ||
	    !v8_length(p, string, &word))
		return V8_TEXT_NONE;
	if (!p->part_length)
		p->part_length = word >> 32;
	p->wide = !(type & V8_STRING_NARROW);
	if (shape == V8_STRING_SEQUENTIAL || shape == V8_STRING_EXTERNAL) {
		word = string - 1 + first;
		if (shape == V8_STRING_EXTERNAL &&
		    (type & V8_STRING_UNCACHED || !p->config.string_data ||
		     !v8_word(p, string, p->config.string_data, &word))) {
			p->cut = 1;
			return V8_TEXT_NONE;
		}
		p->text = word + (p->part_skip << p->wide);
		p->text_size = p->part_length << p->wide;
		return V8_TEXT_FOUND;
	}
	if (shape == V8_STRING_SLICED) {
		if (!v8_word(p, string, first + v8_word_bytes(p), &word))
			return V8_TEXT_NONE;
		p->part_skip += v8_smi(p, word);
	}
	if (shape == V8_STRING_CONS) {
		p->part_length = 0;
		if (v8_tagged(p, string, first + v8_word_bytes(p), &word) && v8_has_length(p, word))
			p->cut = 1;
	}
	return v8_tagged(p, string, first, &p->part) ? V8_TEXT_GOES_ON : V8_TEXT_NONE;
}

/* Finds the characters of a string: sets text, text_size and wide. If the string is made of two,
 * uses the first one that is not empty. Returns false if it has no characters. */
ENV_INLINE bool v8_text(struct walk *w, struct v8_walk *p, __u64 string)
{
	__u32 r = V8_TEXT_GOES_ON;

	(void)w;
	p->text = p->text_size = 0;
	p->wide = 0;
	p->part = string;
	p->part_skip = p->part_length = 0;
	ENV_UNROLL
	for (int i = 0; i < 4; i++) {
		if (r == V8_TEXT_GOES_ON)
			r = v8_text_step(V8_ARGUMENTS(w, p));
	}
	return r == V8_TEXT_FOUND;
}

/* --- describing a function --- */

/* Returns how many line ends come before a character. A binary search without branches
 * (search.h). */
ENV_FUNCTION __u64 v8_lines_before(__u64 ends, __u64 count, __u64 character)
{
	__u64 low = 0, size = count & 0xffffff, word;

	for (int i = 0; i < V8_SEARCH && size; i++) {
		const __u64 half = size >> 1;

		if (!runtime_read(ends + (low + half) * 8, &word))
			return low;
		const __u64 less = ((word >> 32) - character) >> 63;

		low += less * (half + 1);
		size = less * (size - half - 1) + (1 - less) * half;
	}
	return low;
}

/* Counts the newlines of the next window of the text. Returns 1 when all are counted, or if some
 * are unreadable. */
ENV_FUNCTION __u32 v8_count_window(V8_PARAMETERS_AND __u32 wide)
{
	V8_FIND(w, p);
	/* The lowest bit of each character. All words are counted in the same way, so that the
	 * verifier has only one path. */
	__u64 ones = wide ? 0x0001000100010001ull : 0x0101010101010101ull;
	__u32 bits = wide ? 16 : 8;
	__u64 at = p->count_at, n = p->count_bytes < WALK_WINDOW ? p->count_bytes : WALK_WINDOW;
	__u64 count = 0;

	if (!p->count_bytes)
		return 1;
	ENV_OPAQUE(n);
	ENV_OPAQUE(ones);
	ENV_OPAQUE(bits);
	for (int k = 0; k < WALK_WINDOW / 8; k++)
		w->window[k] = 0; /* contains no newline */
	if (n > WALK_WINDOW || at < 4096 || at >= WALK_ADDRESS_END ||
	    env_read_user(w->window, n, at))
		return 1;
	const __u64 low = ~(ones << (bits - 1));

	for (int k = 0; k < WALK_WINDOW / 8; k++) {
		__u64 x = w->window[k] ^ ones * '\n';

		/* The highest bit of each character that is zero after the comparison. */
		x = ~(((x & low) + low) | x | low);
		count += (x >> (bits - 1)) * ones >> (64 - bits);
	}
	p->count += count;
	p->count_at = at + n;
	p->count_bytes -= n;
	return 0;
}

/* Counts the newlines of a text. Returns V8_NO_LINE if it is too long or unreadable. */
ENV_FUNCTION __u64 v8_newlines(V8_PARAMETERS_AND __u64 at, __u64 bytes, __u32 wide)
{
	V8_FIND(w, p);
	w->window_start = 0;
	p->count_at = at;
	p->count_bytes = bytes;
	p->count = 0;
	for (int i = 0; i < V8_COUNT_WINDOWS; i++) {
		if (v8_count_window(V8_ARGUMENTS_AND(w, p) wide))
			break;
	}
	return p->count_bytes ? V8_NO_LINE : p->count;
}

#define V8_BLOCK_SHIFT 16 /* log2 of the characters of a block */

/* Returns the line of a character of a script's text; V8_NO_LINE: not known now. */
ENV_FUNCTION __u64 v8_line_in_text(V8_PARAMETERS_AND __u64 script, __u64 character)
{
	V8_FIND(w, p);
	__u64 block = character >> V8_BLOCK_SHIFT, line = 0, from = block;

	/* Find the nearest known block before it. */
	for (int i = 0; i < V8_BLOCKS_AT_ONCE && from; i++, from--) {
		__u64 id = v8_mix(script, from) | 1;
		const struct v8_block *b = v8_block_at(id);

		if (b && b->text == id) {
			line = b->value;
			break;
		}
	}
	for (int i = 0; i < V8_BLOCKS_AT_ONCE; i++) {
		__u64 end = from < block ? (from + 1) << V8_BLOCK_SHIFT : character,
		      at = from << V8_BLOCK_SHIFT;
		__u64 n = v8_newlines(V8_ARGUMENTS_AND(w, p) p->text + (at << p->wide),
				      (end - at) << p->wide, p->wide);

		if (n == V8_NO_LINE)
			return n;
		line += n;
		if (from == block)
			return line;
		from++;
		__u64 id = v8_mix(script, from) | 1;
		struct v8_block *b = v8_block_at(id);

		if (b) {
			b->text = id;
			b->value = line;
		}
	}
	return V8_NO_LINE;
}

/* Describes the function's text, and the line where the text begins. */
ENV_INLINE void v8_describe_text(struct walk *w, struct v8_walk *p, __u64 script, __u64 identity,
				 __u64 first)
{
	__u64 source = 0, range = p->told[V8_TOLD_RANGE], start = (__u32)range, end = range >> 32;

	if (!v8_tagged(p, script, p->config.script_source, &source) || !v8_text(w, p, source) ||
	    end < start || end << p->wide > p->text_size)
		return;
	__u64 line = v8_line_in_text(V8_ARGUMENTS_AND(w, p) identity, start);

	if (line == V8_NO_LINE)
		return;
	p->told[V8_TOLD_LINE] = first + line;
	p->told[V8_TOLD_SHAPES] |= (__u64)p->wide << V8_SHAPE_TEXT | 1u << V8_SHAPE_IS_TEXT;
	p->told[V8_TOLD_ENDS] = p->text + (start << p->wide);
	p->told[V8_TOLD_ENDS_SIZE] = (end - start) << p->wide;
}

/* Describes the lines of the function, whose range is described already. The script may know its
 * line ends. */
ENV_FUNCTION __u32 v8_describe_lines(V8_PARAMETERS_AND __u64 script)
{
	V8_FIND(w, p);
	const struct v8_config *c = &p->config;
	__u64 ends, word = 0, line = 0, id = 0;

	p->told[V8_TOLD_LINE] = V8_NO_LINE;
	p->told[V8_TOLD_ENDS] = p->told[V8_TOLD_ENDS_SIZE] = 0;
	ends = p->ends;
	if (!v8_word(p, script, c->script_line, &line) || !v8_word(p, script, c->script_id, &id))
		return 0;
	line = v8_smi(p, line);
	id = v8_smi(p, id);
	if (c->compressed || v8_type(p, ends) != c->type_fixed_array ||
	    !v8_length(p, ends, &word)) {
		const __u64 isolate = v8_mix(v8_isolate(w, script), w->sample.start_ns);

		v8_describe_text(w, p, script, v8_mix(isolate, id << 32), line);
		return 0;
	}
	__u64 count = v8_count(p, word), from = ends - 1 + v8_elements(p),
	      range = p->told[V8_TOLD_RANGE];
	__u64 first = v8_lines_before(from, count, (__u32)range);
	__u64 last = v8_lines_before(from, count, range >> 32) + 1;

	if (last > count)
		last = count;
	p->told[V8_TOLD_LINE] = first + line;
	p->told[V8_TOLD_ENDS] = from + first * 8;
	p->told[V8_TOLD_ENDS_SIZE] = last > first ? (last - first) * 8 : 0;
	return 1;
}

ENV_FUNCTION __u32 v8_is_cons(V8_PARAMETERS_AND __u64 object)
{
	V8_FIND(w, p);
	const __u32 type = v8_type(p, object);

	(void)w;
	return v8_is_pointer(object) && type < p->config.type_no_string &&
	       (type & V8_STRING_SHAPE) == V8_STRING_CONS;
}

#define V8_TEXT_STRINGS 12 /* a text may have more strings than are described */
#define V8_SHAPES_OF_PART (1 | 1ull << V8_SHAPE_CUT | 1ull << V8_SHAPE_HEADLESS)

/* Takes the next string of the text p->string, which may be made of two, of which the first may
 * also be made of two. */
ENV_FUNCTION __u32 v8_split_text(V8_PARAMETERS)
{
	V8_FIND(w, p);
	const __u32 first = v8_characters(p), second = first + v8_word_bytes(p);

	for (int k = 0; k < 2; k++) {
		if (p->later || !v8_is_cons(V8_ARGUMENTS_AND(w, p) p->string))
			break;
		p->later = p->rest;
		if (!v8_tagged(p, p->string, second, &p->rest) ||
		    !v8_tagged(p, p->string, first, &p->string))
			break;
	}
	p->cut = 0;
	v8_text(w, p, p->string);
	p->string = p->rest;
	p->rest = p->later;
	p->later = 0;
	return 1;
}

/* Describes a text that may consist of several strings: the last `parts` of them, from told[at] on.
 * The end of a name or a path tells more than its beginning. Returns 0 if the text is empty. */
ENV_FUNCTION __u32 v8_describe_text_of(V8_PARAMETERS_AND __u64 string, __u32 at, __u32 parts)
{
	V8_FIND(w, p);
	const bool name = at == V8_TOLD_NAME;
	const __u32 shape = name ? V8_SHAPE_NAME : V8_SHAPE_SCRIPT;
	const __u64 most = name ? V8_NAME_BYTES : V8_SCRIPT_BYTES;
	__u64 shapes = 0, n = 0, any = 0;

	(void)w;
	p->string = string;
	p->rest = p->later = 0;
	for (__u32 i = 0; i < V8_NAME_PARTS; i++)
		if (i < parts)
			p->told[(at + 2 * i + 1) % V8_TOLD_WORDS] = 0;
	for (__u32 i = 0; i < V8_TEXT_STRINGS; i++) {
		if (!v8_has_length(p, p->string))
			break;
		v8_split_text(V8_ARGUMENTS(w, p));

		const __u64 size = p->text ? p->text_size : 0, skip = size > most ? size - most : 0;
		const __u32 slot = (__u32)n % parts, to = at + 2 * slot;

		p->told[to % V8_TOLD_WORDS] = p->text + skip;
		p->told[(to + 1) % V8_TOLD_WORDS] = size - skip;
		shapes &= ~(V8_SHAPES_OF_PART << slot);
		shapes |= ((p->wide & 1) | (__u64)(p->cut & 1) << V8_SHAPE_CUT |
			   (__u64)(skip != 0) << V8_SHAPE_HEADLESS)
			  << slot;
		any |= size;
		n++;
	}
	if (v8_has_length(p, p->string))
		shapes |= 1ull << (V8_SHAPE_CUT + (n - 1) % parts);
	shapes <<= shape;
	if (n > parts)
		shapes |= 1ull << (V8_SHAPE_HEADLESS + shape + n % parts) |
			  (n % parts) << (name ? V8_SHAPE_NAME_FIRST : V8_SHAPE_SCRIPT_FIRST);
	p->told[V8_TOLD_SHAPES] |= shapes;
	return any != 0;
}

/* Describes the function's range, by its scope, and finds its names. If there is no scope, `scope`
 * is the name. */
ENV_FUNCTION __u32 v8_read_scope(V8_PARAMETERS_AND __u64 scope)
{
	V8_FIND(w, p);
	const struct v8_config *c = &p->config;
	__u64 word = 0, locals = 0, start = 0, end = 0;

	(void)w;
	p->told[V8_TOLD_RANGE] = 0;
	p->name = scope;
	p->inferred = 0;
	p->told[V8_TOLD_KIND] &= 0xffffffff;
	if (v8_type(p, scope) != c->type_scope_info)
		return 0;
	if (!v8_word(p, scope, c->scope_flags & ~7u, &word) ||
	    !v8_word(p, scope, c->scope_locals, &locals))
		return 0;
	__u32 flags = (__u32)(word >> (c->scope_flags & 7) * 8);
	__u64 at = scope - 1 + c->scope_first, name = 0, inferred = 0;
	const __u32 each = v8_word_bytes(p), classless = c->scope_classless & 1;

	p->told[V8_TOLD_KIND] |= (__u64)flags << 32;

	locals = v8_smi(p, locals);
	/* Each local has a name and a word, or all names are in one table. */
	at += each * ((locals < c->scope_inlined_locals ? locals : 1) + locals);
	at += (flags & 15) == c->scope_module ? each : 0;
	at += (flags >> 10 & 1) > classless ? each : 0; /* the variable of its class */
	/* A word tells where `this` is, on the stack or in a context. */
	at += c->scope_receiver && (flags >> 7 & 3) % 3 ? each : 0;
	flags <<= classless;
	if (flags >> 12 & 3) {
		runtime_fetch(&p->copies, &name, 8, at);
		at += 2 * each;
	}
	if (flags >> 14 & 1) {
		runtime_fetch(&p->copies, &inferred, 8, at);
		at += each;
	}
	if (c->scope_range)
		at = scope - 1 + c->scope_range;
	if (runtime_fetch(&p->copies, &start, 8, at) &&
	    runtime_fetch(&p->copies, &end, 8, at + each) && v8_is_smi(p, start) &&
	    v8_is_smi(p, end))
		p->told[V8_TOLD_RANGE] = v8_smi(p, start) | (__u64)v8_smi(p, end) << 32;
	p->name = v8_whole(p, name, scope);
	p->inferred = v8_whole(p, inferred, scope);
	return 1;
}

/* Describes what is known of the function whose description was read into p->shared. */
ENV_INLINE void v8_describe_function(struct walk *w, struct v8_walk *p)
{
	const struct v8_config *c = &p->config;
	__u64 script = v8_whole(p, V8_FIELD(p->shared, c->shared_script), p->upper), name = 0;

	p->told[V8_TOLD_INLINED_COUNT] = 0;
	p->told[V8_TOLD_EXTRA] = p->told[V8_TOLD_EXTRA_SIZE] = 0;
	p->told[V8_TOLD_BYTECODES] = p->told[V8_TOLD_BYTECODES_SIZE] = 0;
	p->told[V8_TOLD_POSITIONS] = p->told[V8_TOLD_POSITIONS_SIZE] = 0;
	for (__u32 i = V8_TOLD_OWN_CALLS; i < V8_TOLD_WORDS; i++)
		p->told[i] = 0;
	v8_read_scope(V8_ARGUMENTS_AND(w, p)
			      v8_whole(p, V8_FIELD(p->shared, c->shared_scope), p->upper));
	if (p->own_name)
		p->name = p->own_name;
	p->told[V8_TOLD_SHAPES] = 0;
	if (!v8_describe_text_of(V8_ARGUMENTS_AND(w, p) p->name, V8_TOLD_NAME, V8_NAME_PARTS))
		v8_describe_text_of(V8_ARGUMENTS_AND(w, p) p->inferred, V8_TOLD_NAME,
				    V8_NAME_PARTS);
	v8_tagged(p, script, c->script_url, &name);
	if (!v8_describe_text_of(V8_ARGUMENTS_AND(w, p) name, V8_TOLD_SCRIPT, V8_SCRIPT_PARTS)) {
		v8_tagged(p, script, c->script_name, &name);
		v8_describe_text_of(V8_ARGUMENTS_AND(w, p) name, V8_TOLD_SCRIPT, V8_SCRIPT_PARTS);
	}
	v8_describe_lines(V8_ARGUMENTS_AND(w, p) script);
}

/* Describes the elements of an array of bytes. */
ENV_INLINE void v8_describe_array(struct v8_walk *p, __u64 array, __u32 what)
{
	__u64 word = 0;

	if (!v8_is_pointer(array) || !v8_length(p, array, &word) ||
	    v8_count(p, word) >= V8_ELEMENTS_MAX)
		return;
	p->told[what] = array - 1 + v8_elements(p);
	p->told[what + 1] = v8_count(p, word);
}

/* --- objects --- */

/* Finds the positions of the bytecodes of the function whose description was read into p->shared:
 * p->positions. */
ENV_FUNCTION __u32 v8_find_positions(V8_PARAMETERS)
{
	V8_FIND(w, p);
	const struct v8_config *c = &p->config;

	(void)w;
	p->positions = 0;
	p->data = V8_FIELD(p->shared, c->shared_data);
	/* Code of Sparkplug has the bytecodes in place of the data for deoptimization. */
	if (v8_type(p, p->data) != c->type_bytecodes &&
	    (!v8_is_pointer(p->data) || !v8_word(p, p->data, c->code_deopt, &p->data) ||
	     v8_type(p, p->data) != c->type_bytecodes))
		return 0;
	return v8_word(p, p->data, c->bytecodes_positions, &p->positions);
}

/* Describes one of the functions that are inlined in the code. */
ENV_FUNCTION __u64 v8_describe_inlined(V8_PARAMETERS_AND __u64 shared)
{
	V8_FIND(w, p);
	__u64 identity = v8_shared(V8_ARGUMENTS_AND(w, p) shared & ~2ull);

	if (!identity)
		return 0;
	/* Only code of Maglev needs these positions. V8 may not have made them yet. */
	p->positions = 0;
	if (p->config.code_maglev) {
		v8_find_positions(V8_ARGUMENTS(w, p));
		identity ^= (__u64)v8_is_array(p, p->positions) << 1;
	}
	identity = v8_key(v8_mix(identity, V8_INLINED));
	p->told[V8_TOLD_IDENTITY] = identity;
	p->told[V8_TOLD_KIND] = V8_INLINED;
	v8_describe_function(w, p);
	v8_describe_array(p, p->positions, V8_TOLD_POSITIONS);
	if (!p->lost)
		env_told_object(w, &p->copies, p->told, v8_key(identity), v8_check(identity));
	return identity;
}

/* Copies the functions that are inlined in the code. They are listed in its data for
 * deoptimization. */
ENV_INLINE __u32 v8_inlined(struct walk *w, struct v8_walk *p, __u64 deopt)
{
	const struct v8_config *c = &p->config;
	__u64 count = 0, literals = 0, shared;

	if (!v8_is_pointer(deopt) || !v8_word(p, deopt, c->deopt_inlined, &count) ||
	    !v8_word(p, deopt, c->deopt_literals, &literals))
		return 0;
	count >>= 32;
	if (count > V8_INLINED_MAX)
		count = V8_INLINED_MAX;
	for (__u32 i = 0; i < V8_INLINED_MAX; i++) {
		if (i >= count || !v8_word(p, literals, v8_elements(p) + i * 8, &shared))
			break;
		p->keys[i] = v8_describe_inlined(V8_ARGUMENTS_AND(w, p) shared);
	}
	return (__u32)count;
}

/* Words of the data for deoptimization after that of inlined calls: where the first exit is, the
 * numbers of eager and of lazy exits, and three words of each exit, the eager ones first. */
#define V8_DEOPT_EAGER 16
#define V8_DEOPT_EXITS 32
#define V8_DEOPT_BYTES 24
#define V8_DEOPT_MAX 4096

/* Describes which bytecode each call belongs to, as V8's tracebacks find it: the safepoints, which
 * give the exit of each call, the lazy exits, their translations, which have the frames of inlined
 * calls, and the positions of the bytecodes. What is described already are the code's own positions
 * and inlined calls. */
ENV_INLINE void v8_describe_lazy(struct walk *w, struct v8_walk *p, __u64 deopt)
{
	const struct v8_config *c = &p->config;
	__u64 exits = c->deopt_inlining + V8_DEOPT_EXITS, eager = 0, lazy = 0;
	const __u32 after = c->code_size + 4u;

	if (!v8_find_positions(V8_ARGUMENTS(w, p)) ||
	    !v8_word(p, deopt, v8_elements(p), &p->data) ||
	    !v8_word(p, deopt, c->deopt_inlining + V8_DEOPT_EAGER, &eager) ||
	    !v8_word(p, deopt, c->deopt_inlining + V8_DEOPT_EAGER + 8, &lazy))
		return;
	eager = v8_smi(p, eager);
	lazy = v8_smi(p, lazy);
	if (eager > V8_DEOPT_MAX || lazy > V8_DEOPT_MAX)
		return;
	for (__u32 i = 0; i < 2; i++) {
		p->told[V8_TOLD_OWN_POSITIONS + i] = p->told[V8_TOLD_POSITIONS + i];
		p->told[V8_TOLD_OWN_CALLS + i] = p->told[V8_TOLD_EXTRA + i];
		p->told[V8_TOLD_POSITIONS + i] = p->told[V8_TOLD_TRANSLATIONS + i] = 0;
	}
	v8_describe_array(p, p->positions, V8_TOLD_POSITIONS);
	v8_describe_array(p, p->data, V8_TOLD_TRANSLATIONS);
	p->told[V8_TOLD_KIND] = V8_LAZY | p->told[V8_TOLD_KIND] >> 32 << 32;
	/* The table of safepoints follows the instructions. */
	p->told[V8_TOLD_EXTRA] = p->code_body + p->code_size;
	p->told[V8_TOLD_EXTRA_SIZE] = (__u32)V8_FIELD(p->code, after);
	p->told[V8_TOLD_BYTECODES] = deopt - 1 + exits + eager * V8_DEOPT_BYTES;
	p->told[V8_TOLD_BYTECODES_SIZE] = lazy * V8_DEOPT_BYTES;
	p->told[V8_TOLD_INLINED_COUNT] |= eager << 32;
}

/* Describes code that is not JavaScript. */
ENV_INLINE void v8_describe_other(struct walk *w, struct v8_walk *p, __u64 identity, __u64 instance)
{
	const __u32 kind = p->kind;

	for (__u32 i = V8_TOLD_RANGE; i < V8_TOLD_INLINED; i++)
		p->told[i] = 0;
	p->told[V8_TOLD_IDENTITY] = identity;
	p->told[V8_TOLD_KIND] = kind;
	p->told[V8_TOLD_RANGE] = V8_NO_NUMBER;
	p->told[V8_TOLD_LINE] = V8_NO_LINE;
	if (kind == V8_WASM)
		v8_wasm_describe(V8_ARGUMENTS_AND(w, p) instance);
	if (!p->lost)
		env_told_object(w, &p->copies, p->told, v8_key(identity), v8_check(identity));
}

/* Copies what names the object of the last frame, if the object was not seen before. If some of
 * that cannot be read now, the next sample tries again. Not part of v8_frame, since the verifier
 * limits the depth of calls. Returns 0 if there is no object. */
ENV_INLINE int v8_describe(struct walk *w, struct v8_walk *p)
{
	const struct v8_config *c = &p->config;
	__u64 identity = p->tell_identity, shared = p->tell_shared, word = 0;
	__u32 kind = p->kind, count = 0;

	if (!shared)
		return 0;
	p->tell_shared = 0;
	p->lost = 0;
	p->own_name = 0;
	if (kind == V8_WASM || kind == V8_REGEXP) {
		v8_describe_other(w, p, identity, shared);
		return 1;
	}
	if (kind == V8_OPTIMIZED)
		count = v8_inlined(w, p, V8_FIELD(p->code, c->code_deopt));
	if (!v8_shared(V8_ARGUMENTS_AND(w, p) shared))
		return 1;
	p->told[V8_TOLD_IDENTITY] = identity;
	p->told[V8_TOLD_KIND] = kind;
	p->own_name = p->tell_name;
	v8_describe_function(w, p);

	/* p still holds the values of the last frame. */
	__u64 deopt = V8_FIELD(p->code, c->code_deopt), bytecodes = V8_BYTECODES(p);
	__u64 positions = V8_FIELD(p->code, c->code_positions);

	if (kind == V8_OPTIMIZED) {
		v8_describe_array(p, positions, V8_TOLD_POSITIONS);
		if (v8_word(p, deopt, c->deopt_inlining, &word))
			v8_describe_array(p, word, V8_TOLD_EXTRA);
		p->told[V8_TOLD_INLINED_COUNT] = count;
		for (__u32 i = 0; i < V8_INLINED_MAX; i++)
			p->told[V8_TOLD_INLINED + i] = p->keys[i];
		/* The table of safepoints follows the instructions. */
		if (!c->code_body) {
			const __u32 after = c->code_size + 4u;

			p->told[V8_TOLD_BYTECODES] = p->code_body + p->code_size;
			p->told[V8_TOLD_BYTECODES_SIZE] = (__u32)V8_FIELD(p->code, after);
		}
		if (c->code_maglev &&
		    ((__u32)V8_FIELD(p->code, c->code_flags) & V8_CODE_KIND) == c->code_maglev &&
		    v8_is_pointer(deopt))
			v8_describe_lazy(w, p, deopt);
	}
	if (kind == V8_BASELINE || kind == V8_INTERPRETED) {
		if (v8_type(p, bytecodes) == c->type_bytecodes &&
		    v8_tagged(p, bytecodes, c->bytecodes_positions, &word))
			v8_describe_array(p, word, V8_TOLD_POSITIONS);
	}
	if (kind == V8_BASELINE && v8_type(p, bytecodes) == c->type_bytecodes) {
		v8_describe_array(p, positions, V8_TOLD_EXTRA);
		p->told[V8_TOLD_BYTECODES] = bytecodes - 1 + c->bytecodes_start;
		/* Their length is a Smi in all versions. */
		if (v8_word(p, bytecodes, V8_LENGTH_WORD, &word))
			p->told[V8_TOLD_BYTECODES_SIZE] = v8_smi(p, word);
	}
	if (!p->lost)
		env_told_object(w, &p->copies, p->told, v8_key(identity), v8_check(identity));
	return 1;
}

#endif
