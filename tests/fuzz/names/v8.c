/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: copies of V8's functions, as the walk of a hostile process may have made them. The first
 * byte says whether the build's bytecodes are known; OBJECTS descriptions of functions follow; the
 * rest is the memory from BASE on. The first function is named; the others are inlined into it.
 * That takes bounded time and memory. The result is UTF-8, with lines in order and calls after
 * their callers.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "common/names/runtime/v8/v8.h"

#define BASE 0x10000u
#define OBJECTS 3
#define TOLD_BYTES (V8_TOLD_WORDS * 8)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const struct runtime_ops v8_runtime;

static struct object_memory memory[OBJECTS];

static uint64_t key_of(unsigned object)
{
	return V8_KEY | (uint64_t)object;
}

static struct object_memory *other(void *ctx, uint64_t address, uint64_t check)
{
	(void)ctx;
	for (unsigned i = 0; i < OBJECTS; i++)
		if (address == key_of(i) && check == v8_check(key_of(i)))
			return &memory[i];
	return NULL;
}

static void add_piece(struct object_memory *m, struct span all, const uint64_t *told, unsigned what,
		      uint32_t most)
{
	const uint64_t skip = told[what] - BASE, wanted = told[what + 1];

	if (told[what] < BASE || skip >= all.len)
		return;
	struct span piece = { .data = all.data + skip, .len = all.len - (size_t)skip };

	if (piece.len > most)
		piece.len = most;
	if (piece.len > wanted)
		piece.len = (size_t)wanted;
	assert(object_memory_add(m, told[what], piece) == 0);
}

/* Like an object that the walk copied. Its identity leads back to it, and calls lead to objects. */
static void copy(unsigned object, const uint8_t *at, struct span all)
{
	struct object_memory *m = &memory[object];
	uint64_t told[V8_TOLD_WORDS];

	memcpy(told, at, sizeof(told));
	told[V8_TOLD_IDENTITY] = key_of(object);
	for (unsigned i = V8_TOLD_INLINED; i < V8_TOLD_WORDS; i++)
		if (told[i])
			told[i] = key_of((unsigned)(told[i] % (OBJECTS + 1)));
	*m = (struct object_memory){ .other = other, .whole = true };
	assert(object_memory_add(
		       m, key_of(object),
		       (struct span){ .data = (const uint8_t *)told, .len = sizeof(told) }) == 0);
	add_piece(m, all, told, V8_TOLD_NAME, V8_NAME_BYTES);
	add_piece(m, all, told, V8_TOLD_SCRIPT, V8_SCRIPT_BYTES);
	add_piece(m, all, told, V8_TOLD_EXTRA, V8_EXTRA_BYTES);
	add_piece(m, all, told, V8_TOLD_BYTECODES, V8_BYTECODES_BYTES);
	add_piece(m, all, told, V8_TOLD_POSITIONS, V8_POSITIONS_BYTES);
	add_piece(m, all, told, V8_TOLD_ENDS, V8_ENDS_BYTES);
	add_piece(m, all, told, V8_TOLD_TRANSLATIONS, V8_TRANSLATIONS_BYTES);
	add_piece(m, all, told, V8_TOLD_OWN_POSITIONS, V8_POSITIONS_BYTES);
	add_piece(m, all, told, V8_TOLD_OWN_CALLS, V8_EXTRA_BYTES);
}

static void expect_utf8(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len;) {
		uint8_t c = (uint8_t)bytes[i++];
		int more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;

		assert(c < 0x80 || (c >= 0xc2 && c <= 0xf4));
		for (; more; more--, i++)
			assert(i < len && ((uint8_t)bytes[i] & 0xc0) == 0x80);
	}
}

static void expect_sane(const struct runtime_object *o)
{
	const struct runtime_line *lines = (const struct runtime_line *)o->lines.data;
	const size_t count = o->lines.len / sizeof(*lines);
	const struct runtime_inlined *inlined = (const struct runtime_inlined *)o->inlined.data;
	const size_t calls = o->inlined.len / sizeof(*inlined);
	struct runtime_call said[64];

	assert(o->name.len > 0 && o->name.len <= RUNTIME_TEXT && o->source.len <= RUNTIME_TEXT);
	expect_utf8(o->name.bytes, o->name.len);
	expect_utf8(o->source.bytes, o->source.len);
	assert(count <= RUNTIME_LINES && calls <= RUNTIME_INLINED);
	for (size_t i = 1; i < count; i++)
		assert(lines[i - 1].end < lines[i].end);
	for (size_t i = 0; i < calls; i++) {
		assert(inlined[i].caller <= i);
		assert(inlined[i].name + (size_t)inlined[i].name_len <= o->texts.len);
		assert(inlined[i].source + (size_t)inlined[i].source_len <= o->texts.len);
		expect_utf8((const char *)o->texts.data + inlined[i].name, inlined[i].name_len);
		expect_utf8((const char *)o->texts.data + inlined[i].source, inlined[i].source_len);
	}
	for (size_t i = 0; i < count; i++) {
		const unsigned n = runtime_calls(o, lines[i].end - 1, said, 64);

		assert(n > 0 && n <= 64 && said[n - 1].name.len == o->name.len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct runtime_build b = { .known = true, .config.runtime = RUNTIME_V8 };
	struct runtime_object o = { 0 };
	struct v8_naming n = { .kind_shift = 17, .before_first = 1 };

	if (size < 1 + OBJECTS * TOLD_BYTES)
		return 0;
	const struct span all = { .data = data + 1 + OBJECTS * TOLD_BYTES,
				  .len = size - 1 - OBJECTS * TOLD_BYTES };

	/* A build has some 200 bytecodes of 1 to 17 bytes; 0: none is there. */
	n.bytecodes = data[0] & 1 ? 200 : 0;
	for (unsigned scale = 0; scale < V8_SCALES; scale++)
		for (unsigned i = 0; i < n.bytecodes; i++)
			n.size[scale][i] = (uint8_t)(i % 5 ? 1 + ((i % 5) << scale) : i % 2);
	/* Those of V8 12.4. */
	n.opcodes = 40;
	n.opcode_begin = 12;
	memcpy(n.operands, "\5\3\3\3\2\1\3\4\3\2\1\0\3\3", 14);
	memset(n.operands + 14, 1, 26);
	n.operands[32] = 0;
	n.operands[38] = 2;
	memcpy(b.naming, &n, sizeof(n));
	assert(v8_runtime.is_sane(&b));
	for (unsigned i = 0; i < OBJECTS; i++)
		copy(i, data + 1 + (size_t)i * TOLD_BYTES, all);

	const int r = v8_runtime.name(&b, key_of(0), v8_check(key_of(0)), &memory[0], &o);

	assert(r == 0 || r == RUNTIME_GONE);
	if (r == 0)
		expect_sane(&o);
	for (unsigned i = 0; i < OBJECTS; i++) {
		assert(memory[i].total <= OBJECT_MEMORY_BYTES);
		object_memory_done(&memory[i]);
	}
	runtime_object_done(&o);
	return 0;
}
