/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a code object, its strings and its line table from memory.
 *
 * Sources: Objects/lnotab_notes.txt (up to 3.9), PEP 626 (3.10), Objects/locations.md, later
 * InternalDocs/code_objects.md (from 3.11 on); PEP 393 for strings.
 */
#include <errno.h>
#include "common/base/bytes/numbers.h"
#include "common/base/bytes/unaligned.h"
#include "common/names/runtime/python/python.h"

#define MAX_TABLE (64u << 10)
#define GUESS_NAME 128 /* bytes read at once of a str: a name, a path */
#define GUESS_PATH 192
#define GUESS_TABLE 256

/* --- strings --- */

static int read_text(const struct python_naming *n, uint64_t address, uint32_t guess,
		     struct object_memory *m, struct runtime_text *ret)
{
	const uint8_t *head, *data;
	uint32_t state, kind, count;
	uint64_t length, at;
	int r = object_memory_get(m, address, n->text_ascii, guess, &head);

	if (r)
		return runtime_verdict(r);
	length = unaligned_u64(head + n->text_length);
	state = unaligned_u32(head + n->text_state) >> n->text_kind;
	kind = state & 7;
	if (kind != 1 && kind != 2 && kind != 4)
		return RUNTIME_GONE;
	count = length < RUNTIME_TEXT ? (uint32_t)length : RUNTIME_TEXT;
	ret->len = 0;
	if (count == 0)
		return 0;
	if (state & 1 << 3) { /* compact: the characters follow the head */
		uint32_t skip = state & 1 << 4 ? n->text_ascii : n->text_other;

		r = object_memory_get(m, address, skip + count * kind, 0, &data);
		if (r == 0)
			data += skip;
	} else {
		r = object_memory_get(m, address, n->text_other + 8u, 0, &data);
		at = r ? 0 : unaligned_u64(data + n->text_other);
		r = r ? r : object_memory_get(m, at, count * kind, 0, &data);
	}
	if (r)
		return runtime_verdict(r);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *c = data + (size_t)i * kind;

		runtime_append_character(ret, kind == 1	  ? c[0]
					      : kind == 2 ? (uint32_t)(c[0] | c[1] << 8)
							  : unaligned_u32(c));
	}
	return 0;
}

/* --- lines --- */

static int add(struct runtime_object *o, uint64_t end, int64_t line)
{
	if (end > RUNTIME_POSITION_MASK)
		end = RUNTIME_POSITION_MASK;
	return runtime_add_line(o, (uint32_t)end,
				line > 0 && line <= INT32_MAX ? (uint32_t)line : 0);
}

/* Up to 3.9: pairs of an advance in bytes and an advance in lines, which is a signed byte. */
static int lines_of_lnotab(uint32_t first, struct span t, struct runtime_object *ret)
{
	int64_t line = first;
	uint64_t at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i + 1 < t.len; i += 2) {
		at += t.data[i];
		if (t.data[i])
			r = add(ret, at, line);
		line += (int8_t)t.data[i + 1];
	}
	return r ? r : add(ret, RUNTIME_POSITION_MASK, line);
}

/* 3.10: pairs of the length of a range in bytes, and the difference of its line to the previous
 * one. -128 means no line. A position is two bytes. */
static int lines_of_310(uint32_t first, struct span t, struct runtime_object *ret)
{
	int64_t line = first;
	uint64_t at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i + 1 < t.len; i += 2) {
		int8_t by = (int8_t)t.data[i + 1];

		line += by == -128 ? 0 : by;
		at += t.data[i];
		if (t.data[i])
			r = add(ret, at / 2, by == -128 ? 0 : line);
	}
	return r;
}

/* Reads a number in groups of six bits, the lowest first. Bit 6 is set if more groups follow. */
static uint32_t varint(struct span *t)
{
	uint32_t v = 0;
	uint8_t b = 64;

	for (unsigned shift = 0; (b & 64) && t->len > 0; shift += 6) {
		b = t->data[0];
		if (shift < 30)
			v |= (uint32_t)(b & 63) << shift;
		t->data++;
		t->len--;
	}
	return v;
}

/* From 3.11 on: an entry begins with a byte whose bit 7 is set. It contains a kind, and the number
 * of positions minus one. */
static int lines_of_311(uint32_t first, struct span t, struct runtime_object *ret)
{
	int64_t line = first;
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && t.len > 0) {
		unsigned kind = t.data[0] >> 3 & 15;
		uint32_t by;

		at += (t.data[0] & 7u) + 1;
		t.data++;
		t.len--;
		if (kind == 13 || kind == 14) {
			by = varint(&t);
			line += by & 1 ? -(int64_t)(by >> 1) : (int64_t)(by >> 1);
		} else if (kind >= 10 && kind <= 12) {
			line += kind - 10;
		}
		r = add(ret, at, kind == 15 ? 0 : line);
		while (t.len > 0 && !(t.data[0] & 128)) {
			t.data++;
			t.len--;
		}
	}
	return r;
}

/* Decodes a line table and adds its lines to *ret. Returns 0 or -ENOMEM. */
static int decode_lines(const struct python_naming *n, uint32_t first, struct span table,
			struct runtime_object *ret)
{
	if (n->minor <= 9)
		return lines_of_lnotab(first, table, ret);
	return n->minor == 10 ? lines_of_310(first, table, ret) : lines_of_311(first, table, ret);
}

/* --- the object --- */

/* Whether an object is alive, by its first word. In a freed object this word is a pointer to the
 * next free one, or NULL, while the rest stays unchanged. */
static bool is_alive(const struct python_naming *n, uint64_t count)
{
	return !n->counted || (count && count <= UINT32_MAX);
}

uint64_t python_sum(const struct python_naming *n, const uint8_t *code, struct span name)
{
	uint64_t words[PYTHON_CHECK_WORDS / 2] = { 0 }, text[PYTHON_TEXT_WORDS] = { 0 };
	uint64_t check;

	memcpy(words, code + n->code_check, n->check_words * 4);
	check = python_check(words, n->check_words);
	if (!n->check_text || name.len < n->text_ascii)
		return check;
	size_t len = name.len - n->text_length;
	memcpy(text, name.data + n->text_length, numbers_smaller(len, sizeof(text)));
	return python_check_text(check, text);
}

/* Computes the check value from memory. Returns 0, RUNTIME_WANTS or RUNTIME_GONE. */
static int read_sum(const struct python_naming *n, const uint8_t *code, struct object_memory *m,
		    uint64_t *ret)
{
	uint64_t name = unaligned_u64(code + (n->code_qualname ? n->code_qualname : n->code_name));
	const uint64_t most = PYTHON_TEXT_WORDS * 8u + n->text_length;
	struct span text = { 0 };
	uint64_t length;
	int r = 0;

	if (n->check_text) {
		r = object_memory_get(m, name, n->text_ascii, GUESS_NAME, &text.data);
		if (r)
			return runtime_verdict(r);
		length = unaligned_u64(text.data + n->text_length);
		text.len = length < most - n->text_ascii ? n->text_ascii + length : most;
		r = object_memory_get(m, name, (uint32_t)text.len, 0, &text.data);
	}
	if (r)
		return runtime_verdict(r);
	*ret = python_sum(n, code, text);
	return 0;
}

bool python_is_sane(const struct runtime_build *b)
{
	struct python_naming n;

	memcpy(&n, b->naming, sizeof(n));

	const uint32_t words[] = { n.code_name, n.code_qualname, n.code_filename, n.code_table,
				   n.code_units };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i] + 8u > n.code_bytes)
			return false;
	return n.code_firstline + 4u <= n.code_bytes && n.code_traceable + 4u <= n.code_bytes &&
	       n.check_words <= PYTHON_CHECK_WORDS &&
	       n.code_check + n.check_words * 4u <= n.code_bytes &&
	       n.text_length + 8u <= n.text_ascii && n.text_state + 4u <= n.text_ascii &&
	       n.text_ascii <= PYTHON_TEXT_WORDS * 8u + n.text_length &&
	       n.text_ascii <= n.text_other && n.text_other <= GUESS_NAME && n.text_kind <= 27 &&
	       n.bytes_size + 8u <= n.bytes_data && n.bytes_data <= GUESS_TABLE;
}

int python_name(const struct runtime_build *b, uint64_t address, uint64_t check,
		struct object_memory *m, struct runtime_object *ret)
{
	uint64_t name, filename, table, size = 0;
	uint64_t sum;
	uint32_t first, guess = GUESS_TABLE;
	struct python_naming n;
	const uint8_t *code, *lines, *now;
	int r, again, wants = 0;

	memcpy(&n, b->naming, sizeof(n));
	r = object_memory_get(m, address, n.code_bytes, 0, &code);
	if (r)
		return runtime_verdict(r);
	if (!is_alive(&n, unaligned_u64(code)))
		return RUNTIME_GONE;
	r = read_sum(&n, code, m, &sum);
	if (r == RUNTIME_WANTS)
		wants = r;
	else if (r || sum != check)
		return r ? r : RUNTIME_GONE;
	first = unaligned_u32(code + n.code_firstline);
	name = unaligned_u64(code + (n.code_qualname ? n.code_qualname : n.code_name));
	filename = unaligned_u64(code + n.code_filename);
	table = unaligned_u64(code + n.code_table);
	if (n.code_units) {
		uint64_t units = unaligned_u64(code + n.code_units);

		ret->hidden = unaligned_u32(code + n.code_traceable) >= units;
		guess = units < MAX_TABLE / 2 ? (uint32_t)units * 3 / 2 + GUESS_TABLE / 4
					      : MAX_TABLE;
	}
	/* Request all of them at once, so that one round is enough. */
	r = read_text(&n, name, GUESS_NAME, m, &ret->system_name);
	if (r == RUNTIME_WANTS)
		wants = r;
	else if (r)
		return r;
	r = read_text(&n, filename, GUESS_PATH, m, &ret->source);
	if (r == RUNTIME_WANTS)
		wants = r;
	else if (r)
		return r;
	r = object_memory_get(m, table, n.bytes_data, guess, &lines);
	if (r == 0) {
		size = unaligned_u64(lines + n.bytes_size);
		r = size > MAX_TABLE
			    ? OBJECT_MEMORY_NONE
			    : object_memory_get(m, table, n.bytes_data + (uint32_t)size, 0, &lines);
	}
	/* Read the object once more after its strings. If it is unchanged, the strings were its
	 * own. A copy was made in one go and needs no second read. */
	again = m->whole ? OBJECT_MEMORY_NONE
			 : object_memory_get(m, address - 8, 8u + n.code_bytes, 0, &now);
	if (r == OBJECT_MEMORY_WANTED || again == OBJECT_MEMORY_WANTED || wants)
		return RUNTIME_WANTS;
	if (again == 0 &&
	    (!is_alive(&n, unaligned_u64(now + 8)) ||
	     memcmp(now + 8 + n.code_check, code + n.code_check, n.check_words * 4) != 0))
		return RUNTIME_GONE;
	if (r == 0)
		r = decode_lines(&n, first,
				 (struct span){ .data = lines + n.bytes_data, .len = size }, ret);
	if (r < 0)
		return r; /* if the table cannot be read, only the lines are missing */
	ret->start_line = first <= INT32_MAX ? first : 0;
	python_module((struct str){ .data = ret->source.bytes, .len = ret->source.len },
		      &ret->name);
	runtime_append(&ret->name, ".", 1);
	runtime_append(&ret->name, ret->system_name.bytes, ret->system_name.len);
	return 0;
}
