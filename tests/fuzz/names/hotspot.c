/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a method of HotSpot and all it points to. The first byte chooses a layout: those of three
 * versions, or one that the following bytes are, as another process would describe it. Then come
 * the method's address, and pieces of memory: address, length in 16 bits, bytes. They are read in
 * rounds, like memory of a process, in bounded time and memory. The result is UTF-8, with lines in
 * order.
 */
#include <assert.h>
#include <string.h>
#include "common/names/runtime/hotspot/hotspot.h"
#include "tests/fuzz/take.h"

#define MAX_ROUNDS 32
#define OWN_LAYOUT 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As tests/data/hotspot/make.py prints them for Debian's JDK 8 and 17 and for Temurin 25. */
static const struct hotspot_naming layouts[OWN_LAYOUT] = {
	{ .major = 8,
	  .method_const = 8,
	  .method_bytes = 16,
	  .const_bytes = 48,
	  .const_pool = 8,
	  .const_size = 24,
	  .const_code_size = 32,
	  .const_name = 34,
	  .const_signature = 36,
	  .const_flags = 28,
	  .lines = 1,
	  .pool_bytes = 80,
	  .pool_holder = 24,
	  .klass_name = 16,
	  .source = 258,
	  .source_in_class = 216,
	  .symbol_length = 0,
	  .symbol_text = 8 },
	{ .major = 17,
	  .method_const = 8,
	  .method_bytes = 16,
	  .const_bytes = 48,
	  .const_pool = 8,
	  .const_size = 24,
	  .const_code_size = 32,
	  .const_name = 34,
	  .const_signature = 36,
	  .const_flags = 28,
	  .lines = 1,
	  .pool_bytes = 72,
	  .pool_holder = 24,
	  .klass_name = 24,
	  .source = 54,
	  .symbol_length = 4,
	  .symbol_text = 6 },
	{ .major = 25,
	  .method_const = 8,
	  .method_bytes = 16,
	  .const_bytes = 56,
	  .const_pool = 8,
	  .const_size = 24,
	  .const_code_size = 34,
	  .const_name = 36,
	  .const_signature = 38,
	  .const_flags = 28,
	  .lines = 1,
	  .pool_bytes = 72,
	  .pool_holder = 24,
	  .klass_name = 24,
	  .source = 54,
	  .symbol_length = 4,
	  .symbol_text = 6 },
};

/* The bytes of n that the first piece with this address has. */
static struct span read_at(struct span all, uint64_t address, uint64_t n)
{
	while (all.len) {
		const uint64_t start = take_number(&all, 8);
		struct span piece = take(&all, (size_t)take_number(&all, 2));

		if (address - start < piece.len) {
			take(&piece, (size_t)(address - start));
			return take(&piece, (size_t)n);
		}
	}
	return (struct span){ 0 };
}

static void expect_utf8(const struct runtime_text *t)
{
	assert(t->len <= RUNTIME_TEXT);
	for (uint32_t i = 0; i < t->len;) {
		uint8_t c = (uint8_t)t->bytes[i++];
		int more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;

		assert(c >= ' ' && c != 0x7f);
		assert(c < 0x80 || (c >= 0xc2 && c <= 0xf4));
		for (; more; more--, i++)
			assert(i < t->len && ((uint8_t)t->bytes[i] & 0xc0) == 0x80);
	}
}

/* The check value that the kernel's program computes for the method. */
static uint64_t check_of(const struct hotspot_naming *n, struct span all, uint64_t address)
{
	struct span pointer = read_at(all, address + n->method_const, 8);
	const uint64_t at = take_number(&pointer, 8);
	const struct span head = read_at(all, at, n->const_bytes);
	uint8_t bytes[HOTSPOT_CONST_BYTES + 8] = { 0 };
	uint64_t pool;
	uint32_t size;
	uint16_t code_size, name, signature;

	if (head.len)
		memcpy(bytes, head.data, head.len);
	memcpy(&pool, bytes + n->const_pool, sizeof(pool));
	memcpy(&size, bytes + n->const_size, sizeof(size));
	memcpy(&code_size, bytes + n->const_code_size, sizeof(code_size));
	memcpy(&name, bytes + n->const_name, sizeof(name));
	memcpy(&signature, bytes + n->const_signature, sizeof(signature));
	return hotspot_check(at, pool, size | (uint64_t)code_size << 32,
			     name | (uint64_t)signature << 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct runtime_build b = { .known = true, .config.runtime = RUNTIME_HOTSPOT };
	struct span all = { .data = data, .len = size };
	struct runtime_object o = { 0 };
	struct object_memory m = { 0 };
	struct hotspot_naming n = { 0 };
	const uint64_t layout = take_number(&all, 1);
	int r = RUNTIME_WANTS;

	if (layout < OWN_LAYOUT) {
		n = layouts[layout];
	} else {
		const struct span own = take(&all, sizeof(n));

		if (own.len)
			memcpy(&n, own.data, own.len);
	}
	memcpy(b.naming, &n, sizeof(n));
	if (!runtime_is_sane(&b)) {
		assert(layout >= OWN_LAYOUT);
		return 0;
	}
	const uint64_t address = take_number(&all, 8), check = check_of(&n, all, address);

	for (int round = 0; round < MAX_ROUNDS && r == RUNTIME_WANTS; round++) {
		r = runtime_name(&b, address, check, &m, &o);
		assert(m.count <= OBJECT_MEMORY_PIECES);
		assert(m.total <= OBJECT_MEMORY_BYTES);
		for (unsigned i = 0; object_memory_next(&m, &i); i++)
			assert(object_memory_put(
				       &m, i,
				       read_at(all, m.pieces[i].address, m.pieces[i].wanted)) == 0);
	}
	assert(r == 0 || r == RUNTIME_GONE);
	if (r == 0) {
		const struct runtime_line *lines = (const struct runtime_line *)o.lines.data;
		const size_t count = o.lines.len / sizeof(*lines);

		assert(o.name.len);
		expect_utf8(&o.name);
		expect_utf8(&o.system_name);
		expect_utf8(&o.source);
		assert(count <= RUNTIME_LINES);
		for (size_t i = 1; i < count; i++)
			assert(lines[i - 1].end < lines[i].end);
		runtime_line(lines, count, RUNTIME_POSITION_MASK);
	}
	object_memory_done(&m);
	runtime_object_done(&o);
	return 0;
}
