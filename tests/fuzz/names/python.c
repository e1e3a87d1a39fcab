/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a code object and all it points to. The first byte is the version; the rest is the memory
 * from BASE on, with the object at its start. It is read in rounds, like memory of a process, in
 * bounded time and memory. The result is UTF-8, with lines in order. */
#include <assert.h>
#include <stdlib.h>
#include "common/names/runtime/python/python.h"

#define BASE 0x10000u
#define MAX_ROUNDS 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct span read_at(struct span all, uint64_t address, uint32_t n)
{
	uint64_t skip = address - BASE;

	if (address < BASE || skip >= all.len)
		return (struct span){ 0 };
	return (struct span){ .data = all.data + skip,
			      .len = all.len - skip < n ? (size_t)(all.len - skip) : n };
}

static void expect_utf8(const struct runtime_text *t)
{
	assert(t->len <= RUNTIME_TEXT);
	for (uint32_t i = 0; i < t->len;) {
		uint8_t c = (uint8_t)t->bytes[i++];
		int more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;

		assert(c < 0x80 || (c >= 0xc2 && c <= 0xf4));
		for (; more; more--, i++)
			assert(i < t->len && ((uint8_t)t->bytes[i] & 0xc0) == 0x80);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct runtime_build b = { .known = true, .config.runtime = RUNTIME_PYTHON };
	uint8_t bytes[UINT8_MAX * 2] = { 0 };
	uint64_t name, check;
	struct runtime_object o = { 0 };
	struct python_config c;
	struct python_naming n;
	struct object_memory m = { 0 };
	struct span all, code;
	int r = RUNTIME_WANTS;

	if (size < 1)
		return 0;
	all = (struct span){ .data = data + 1, .len = size - 1 };
	/* Larger headers are those of debug builds, which are unknown for 3.6. */
	if (!python_layout(6 + data[0] % 7, data[0] & 64 ? 16 : 0, NULL, &c, &n)) {
		assert(data[0] % 7 == 0 && data[0] & 64);
		return 0;
	}
	memcpy(b.config.own, &c, sizeof(c));
	memcpy(b.naming, &n, sizeof(n));
	assert(n.code_bytes <= sizeof(bytes));
	code = read_at(all, BASE, n.code_bytes);
	if (code.len)
		memcpy(bytes, code.data, code.len);
	memcpy(&name, bytes + (n.code_qualname ? n.code_qualname : n.code_name), sizeof(name));
	check = python_sum(&n, bytes, read_at(all, name, n.text_ascii + 32u));
	for (int round = 0; round < MAX_ROUNDS && r == RUNTIME_WANTS; round++) {
		r = runtime_name(&b, BASE, check, &m, &o);
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
		size_t count = o.lines.len / sizeof(*lines);

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
