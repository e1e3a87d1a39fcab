/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A method points to its ConstMethod, which has indices of its name and descriptor in a
 * ConstantPool. The pool points to its class, which has a name. Names are Symbols: a length and the
 * text. The lines follow the bytecode, in the ConstMethod.
 */
#include <errno.h>
#include <string.h>
#include "common/base/bytes/unaligned.h"
#include "common/names/runtime/hotspot/hotspot.h"

#define MAX_CONST (66u << 10) /* bytes of a ConstMethod with its lines that are read */
#define BEFORE 8u	      /* bytes before an object that may be read with it */

/* The steps of the copy, by number. */
enum step {
	STEP_METHOD,
	STEP_CONST,
	STEP_NAME_SLOT,
	STEP_NAME,
	STEP_SIGNATURE_SLOT,
	STEP_SIGNATURE,
	STEP_POOL,
	STEP_CLASS,
	STEP_CLASS_NAME,
	STEP_SOURCE_SLOT,
	STEP_SOURCE,
	STEP_WHOLE,
	STEPS,
};
static_assert(STEPS <= RUNTIME_STEPS, "they fit");

/* Returns how many bytes of a structure's head must be read to include a word and, if `also`, an
 * index of 16 bits. */
static uint16_t head(uint16_t word, bool also, uint16_t index)
{
	const uint32_t end = word + 8u, other = also ? index + 2u : 0;

	return (uint16_t)(((end > other ? end : other) + 7) & ~7u);
}

static uint16_t pool_head(const struct hotspot_naming *n)
{
	return head(n->pool_holder, !n->source_in_class, n->source);
}

static uint16_t class_head(const struct hotspot_naming *n)
{
	const uint16_t name = n->klass_name, pool = n->source_in_class;

	return head(name > pool ? name : pool, pool, n->source);
}

#define SYMBOL_BYTES 512u /* of a Symbol, at most */

static struct runtime_step symbol(const struct hotspot_naming *n, uint8_t from, uint16_t pointer)
{
	return (struct runtime_step){ .from = from,
				      .pointer = pointer,
				      .bytes = SYMBOL_BYTES,
				      .size_bytes = 2,
				      .size_at = n->symbol_length,
				      .size_add = n->symbol_text };
}

/* Returns the step that reads the pool's word at an index found in an earlier piece. */
static struct runtime_step slot(const struct hotspot_naming *n, uint8_t from, uint16_t pool,
				uint16_t index)
{
	return (struct runtime_step){ .from = from,
				      .pointer = pool,
				      .start = (int16_t)n->pool_bytes,
				      .index_bytes = 2,
				      .index_at = index,
				      .bytes = 8 };
}

struct runtime_copy hotspot_copy(const struct hotspot_naming *n)
{
	const uint8_t source_from = n->source_in_class ? STEP_CLASS : STEP_POOL;
	struct runtime_copy c = { .steps = STEPS };

	c.step[STEP_METHOD] = (struct runtime_step){ .bytes = n->method_bytes };
	c.step[STEP_CONST] = (struct runtime_step){ .from = STEP_METHOD,
						    .pointer = n->method_const,
						    .bytes = n->const_bytes };
	c.step[STEP_NAME_SLOT] = slot(n, STEP_CONST, n->const_pool, n->const_name);
	c.step[STEP_NAME] = symbol(n, STEP_NAME_SLOT, 0);
	c.step[STEP_SIGNATURE_SLOT] = slot(n, STEP_CONST, n->const_pool, n->const_signature);
	c.step[STEP_SIGNATURE] = symbol(n, STEP_SIGNATURE_SLOT, 0);
	c.step[STEP_POOL] = (struct runtime_step){ .from = STEP_CONST,
						   .pointer = n->const_pool,
						   .bytes = pool_head(n) };
	c.step[STEP_CLASS] = (struct runtime_step){ .from = STEP_POOL,
						    .pointer = n->pool_holder,
						    .bytes = class_head(n) };
	c.step[STEP_CLASS_NAME] = symbol(n, STEP_CLASS, n->klass_name);
	c.step[STEP_SOURCE_SLOT] = slot(n, source_from,
					n->source_in_class ? n->source_in_class : RUNTIME_ITSELF,
					n->source);
	c.step[STEP_SOURCE] = symbol(n, STEP_SOURCE_SLOT, 0);
	c.step[STEP_WHOLE] = (struct runtime_step){ .from = STEP_METHOD,
						    .pointer = n->method_const,
						    .bytes = 4096,
						    .size_bytes = 4,
						    .size_at = n->const_size,
						    .size_shift = 3 };
	return c;
}

bool hotspot_is_sane(const struct runtime_build *b)
{
	struct hotspot_naming n;

	memcpy(&n, b->naming, sizeof(n));
	return n.method_bytes >= 16 && n.method_bytes <= 64 &&
	       n.method_const + 8u <= n.method_bytes && n.const_bytes <= HOTSPOT_CONST_BYTES &&
	       n.const_pool + 8u <= n.const_bytes && n.const_size + 4u <= n.const_bytes &&
	       n.const_code_size + 2u <= n.const_bytes && n.const_name + 2u <= n.const_bytes &&
	       n.const_signature + 2u <= n.const_bytes && n.const_flags + 4u <= n.const_bytes &&
	       n.pool_holder <= 480 && n.source <= 480 && n.klass_name <= 480 &&
	       n.source_in_class <= 472 && n.symbol_length + 2u <= n.symbol_text &&
	       n.symbol_text <= 32;
}

/* Reads a Symbol's text, borrowed until more memory comes. */
static int read_symbol(const struct hotspot_naming *n, uint64_t address, struct object_memory *m,
		       struct str *ret)
{
	const uint8_t *at;
	int r = object_memory_get(m, address, n->symbol_text, 64, &at);

	if (r)
		return runtime_verdict(r);
	const uint32_t length = unaligned_u16(at + n->symbol_length);
	const uint32_t len = length < SYMBOL_BYTES - n->symbol_text ? length
								    : SYMBOL_BYTES - n->symbol_text;

	r = object_memory_get(m, address, n->symbol_text + len, 0, &at);
	if (r)
		return runtime_verdict(r);
	*ret = (struct str){ .data = (const char *)at + n->symbol_text, .len = len };
	return 0;
}

/* Reads the Symbol that a word of the pool points to. */
static int read_slot(const struct hotspot_naming *n, uint64_t pool, uint32_t index,
		     struct object_memory *m, struct str *ret)
{
	const uint8_t *at;
	int r = object_memory_get(m, pool + n->pool_bytes + 8ull * index, 8, 0, &at);

	return r ? runtime_verdict(r) : read_symbol(n, unaligned_u64(at) & ~1ull, m, ret);
}

/* --- lines --- */

/* Reads a number of the stream. Returns how many bytes it takes, or 0. */
static size_t take_number(struct span t, bool zeros, uint32_t *ret)
{
	const uint32_t less = zeros ? 0 : 1;
	uint32_t sum = 0;

	for (size_t i = 0; i < 5 && i < t.len; i++) {
		sum += (t.data[i] - less) << 6 * i;
		if (t.data[i] < 192 || i == 4) {
			*ret = sum;
			return i + 1;
		}
	}
	return 0;
}

static int64_t signed_of(uint32_t v)
{
	return v & 1 ? -(int64_t)(v >> 1) - 1 : (int64_t)(v >> 1);
}

int hotspot_lines(struct span t, bool zeros, uint32_t positions, struct runtime_object *ret)
{
	int64_t at = 0, line = 0, before = 0;
	bool any = false;
	int r = 0;

	while (r == 0 && t.len && t.data[0]) {
		uint32_t by_at = t.data[0] >> 3, by_line = t.data[0] & 7;
		size_t n = 0, used = 1;

		if (t.data[0] == 0xff) {
			for (int i = 0; i < 2; i++) {
				const struct span rest = { .data = t.data + used,
							   .len = t.len - used };

				n = take_number(rest, zeros, i ? &by_line : &by_at);
				if (!n)
					return 0;
				used += n;
			}
			at += signed_of(by_at);
			line += signed_of(by_line);
		} else {
			at += by_at;
			line += by_line;
		}
		t.data += used;
		t.len -= used;
		if (at < 0 || at > 65535 || line < 0 || line > 65535)
			return 0;
		/* Bytecodes before the first entry have no line, as in bridges of Kotlin. */
		if (any || at)
			r = runtime_add_line(ret, (uint32_t)at, (uint32_t)before);
		if (!any)
			ret->start_line = (uint64_t)line;
		any = true;
		before = line;
	}
	if (r == 0 && any)
		r = runtime_add_line(ret, positions, (uint32_t)before);
	return r;
}

/* --- the object --- */

/* The parts of a method that lead to its names. */
struct method {
	uint64_t at, pool; /* at: address of its ConstMethod */
	uint32_t size, code_size;
	uint16_t name, signature;
	bool lines;
};

static uint64_t sum_of(const struct method *e)
{
	return hotspot_check(e->at, e->pool, e->size | (uint64_t)e->code_size << 32,
			     e->name | (uint64_t)e->signature << 16);
}

static int read_method(const struct hotspot_naming *n, uint64_t address, struct object_memory *m,
		       struct method *ret)
{
	const uint8_t *at;
	int r = object_memory_get(m, address, n->method_bytes, 0, &at);

	if (r)
		return runtime_verdict(r);
	const uint64_t head = unaligned_u64(at + n->method_const);

	r = object_memory_get(m, head, n->const_bytes, 0, &at);
	if (r)
		return runtime_verdict(r);
	*ret = (struct method){ .at = head,
				.pool = unaligned_u64(at + n->const_pool),
				.size = unaligned_u32(at + n->const_size),
				.code_size = unaligned_u16(at + n->const_code_size),
				.name = unaligned_u16(at + n->const_name),
				.signature = unaligned_u16(at + n->const_signature),
				.lines = unaligned_u32(at + n->const_flags) & n->lines };
	return 0;
}

/* Names a stub: the object is then its name. Returns RUNTIME_NOT_MINE if the object is a method. */
static int read_text(const struct hotspot_naming *n, uint64_t address, uint64_t check,
		     struct object_memory *m, struct runtime_object *ret)
{
	const uint8_t *at;
	UW_U64 text[2];
	int r = object_memory_get(m, address, n->method_bytes, 0, &at);

	if (r)
		return runtime_verdict(r);
	memcpy(text, at, sizeof(text));
	if (hotspot_text_check(text) != check)
		return RUNTIME_NOT_MINE;
	const size_t len = strnlen((const char *)at, n->method_bytes);

	runtime_append(&ret->name, "[", 1);
	hotspot_append((struct str){ .data = (const char *)at, .len = (uint32_t)len }, &ret->name);
	runtime_append(&ret->name, "]", 1);
	ret->system_name = ret->name;
	return 0;
}

/* Reads the lines of a method, as far as possible. Returns 0, RUNTIME_WANTS or -ENOMEM. */
static int read_lines(const struct hotspot_naming *n, const struct method *e,
		      struct object_memory *m, struct runtime_object *ret)
{
	const uint8_t *at;
	const uint64_t size = (uint64_t)e->size * 8, code = n->const_bytes + (uint64_t)e->code_size;

	if (!e->lines || size > MAX_CONST || code >= size)
		return 0;
	int r = object_memory_get(m, e->at, (uint32_t)size, 0, &at);

	if (r)
		return r == OBJECT_MEMORY_WANTED ? RUNTIME_WANTS : 0;
	return hotspot_lines((struct span){ .data = at + code, .len = size - code }, n->major < 20,
			     e->code_size, ret);
}

/* Returns the verdict that takes precedence: errors first, then wanted memory. */
static int worse(int a, int b)
{
	return a && a != RUNTIME_WANTS ? a : b ? b : a;
}

/* Reads the class of a pool, and the name of its source. */
static int read_class(const struct hotspot_naming *n, const struct method *e,
		      struct object_memory *m, struct str *ret_class, struct str *ret_source)
{
	const uint8_t *pool, *klass;
	uint16_t source;
	int r = object_memory_get(m, e->pool, pool_head(n), 0, &pool);

	if (r)
		return runtime_verdict(r);
	source = n->source_in_class ? 0 : unaligned_u16(pool + n->source);

	const uint64_t holder = unaligned_u64(pool + n->pool_holder);
	int other = 0;

	if (source)
		other = read_slot(n, e->pool, source, m, ret_source);
	r = runtime_verdict(object_memory_get(m, holder, class_head(n), 0, &klass));
	if (r == 0 && n->source_in_class) {
		source = unaligned_u16(klass + n->source);
		other = source ? read_slot(n, e->pool, source, m, ret_source) : 0;
	}
	if (r == 0)
		r = read_symbol(n, unaligned_u64(klass + n->klass_name), m, ret_class);
	/* A method without a source is better than none. */
	return worse(r, other == RUNTIME_GONE ? 0 : other);
}

int hotspot_name(const struct runtime_build *b, uint64_t address, uint64_t check,
		 struct object_memory *m, struct runtime_object *ret)
{
	struct str class = { 0 }, name = { 0 }, signature = { 0 }, source = { 0 };
	struct hotspot_naming n;
	struct method e;
	const uint8_t *now;
	int r;

	memcpy(&n, b->naming, sizeof(n));
	r = read_text(&n, address, check, m, ret);
	if (r != RUNTIME_NOT_MINE)
		return r;
	r = read_method(&n, address, m, &e);
	if (r)
		return r;
	if (sum_of(&e) != check)
		return RUNTIME_GONE;
	/* Request all of them at once, so that few rounds are needed. Each call may move what
	 * earlier ones gave, so the texts are used only when nothing is wanted any more. */
	r = read_slot(&n, e.pool, e.name, m, &name);
	r = worse(r, read_slot(&n, e.pool, e.signature, m, &signature));
	r = worse(r, read_class(&n, &e, m, &class, &source));
	if (r && r != RUNTIME_WANTS)
		return r;

	int lines = read_lines(&n, &e, m, ret);

	if (lines < 0)
		return lines;
	/* Read the method once more after its names. If it is unchanged, the names were its own. A
	 * copy was made in one go and needs no second read. */
	const int again = m->whole ? OBJECT_MEMORY_NONE
				   : object_memory_get(m, address - BEFORE, BEFORE + n.method_bytes,
						       0, &now);

	if (r || lines == RUNTIME_WANTS || again == OBJECT_MEMORY_WANTED)
		return RUNTIME_WANTS;
	if (again == 0 && unaligned_u64(now + BEFORE + n.method_const) != e.at)
		return RUNTIME_GONE;
	hotspot_class_text(class, &ret->name);
	runtime_append(&ret->name, ".", 1);
	hotspot_append(name, &ret->name);
	hotspot_parameters(signature, &ret->name);
	hotspot_append(class, &ret->system_name);
	runtime_append(&ret->system_name, ".", 1);
	hotspot_append(name, &ret->system_name);
	hotspot_append(signature, &ret->system_name);
	hotspot_append(source, &ret->source);
	return 0;
}
