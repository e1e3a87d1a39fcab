/* SPDX-License-Identifier: Apache-2.0 */
/* The toy JIT: recognizes and describes its builds, and names its code. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "common/base/bytes/unaligned.h"
#include "bpf/tables.h"
#include "tests/skeleton/toyjit.h"
#include "common/names/runtime/runtime.h"

/* The number of a rule: the CFA is `words` above RSP. */
#define RULE_SHORT_OF(words, rbp_at) (TABLES_RULE_SHORT | (words) << 6 | (rbp_at) << 3)

#define STRING_MAX 64

/* Facts about a build that naming needs: offsets in bytes, of a description of code and of a
 * function. */
struct toyjit_naming {
	uint16_t code_bytes, function_bytes;
	uint16_t serial, function, lines;
	uint16_t name, source;
};
static_assert(sizeof(struct toyjit_naming) <= RUNTIME_OWN_NAMING, "it fits");

static int describe(struct elfview *im, struct runtime_build *ret)
{
	const struct toyjit_naming n = { .code_bytes = 48,
					 .function_bytes = 16,
					 .serial = 24,
					 .function = 32,
					 .lines = 40,
					 .name = 0,
					 .source = 8 };
	struct toyjit_config c = { .unit_shift = 6,
				   .code_bytes = n.code_bytes,
				   .code_start = 0,
				   .code_size = 8,
				   .code_frame = 12,
				   .code_saved = 16,
				   .code_ret = 18,
				   .code_serial = n.serial,
				   .allocated = 7 };
	struct elfview_symbol enter, region, shared, rule, loop;
	uint64_t offset, left;

	if (elfview_exported(im, "toyjit_enter", &enter) != 0)
		return RUNTIME_NOT_MINE;
	snprintf(ret->name, sizeof(ret->name), "Toy JIT 1.0.0");
	if (elfview_exported(im, "toyjit_region", &region) != 0 || enter.size == 0 ||
	    symfile_offset(im->file, enter.value, &offset, &left) != 0 || enter.size > left)
		return 0;
	c.region = region.value - (enter.value - offset);
	ret->config.version = 1u << 16;
	ret->config.takes = RUNTIME_TAKES_GENERATED;
	/* A build whose code has the frame of one place in the file. Either that place is known, or
	 * its rule. */
	if (elfview_exported(im, "toyjit_shared", &shared) == 0) {
		ret->config.takes = RUNTIME_RULES_GENERATED;
		ret->config.alias = shared.value - (enter.value - offset);
	}
	if (elfview_exported(im, "toyjit_rule", &rule) == 0)
		ret->config.rule = RULE_SHORT_OF(7, 2);
	/* A build whose entry function also has no tables. */
	if (elfview_exported(im, "toyjit_loop", &loop) == 0) {
		ret->config.takes |= RUNTIME_TAKES_LOOP;
		ret->config.ranges = ret->config.shown = 1;
		ret->config.loop[0] = (struct runtime_range){ offset, offset + enter.size };
	}
	/* The description, its function, that one's strings, and the lines. */
	ret->config.copy = (struct runtime_copy){
		.steps = 5,
		.step = { { .bytes = n.code_bytes },
			  { .pointer = n.function, .bytes = n.function_bytes },
			  { .from = 1, .pointer = n.name, .bytes = STRING_MAX },
			  { .from = 1, .pointer = n.source, .bytes = STRING_MAX },
			  { .pointer = n.lines, .bytes = 4096, .size_bytes = 8, .size_add = 8 } }
	};
	memcpy(ret->config.own, &c, sizeof(c));
	memcpy(ret->naming, &n, sizeof(n));
	ret->known = true;
	return 0;
}

/* A string of printable ASCII, which ends with a NUL. */
static int read_string(uint64_t address, struct object_memory *m, struct runtime_text *ret)
{
	const uint8_t *at;

	ret->len = 0;
	for (uint32_t n = 0; n < STRING_MAX; n++) {
		int r = object_memory_get(m, address, n + 1, (n | 7) + 1, &at);

		if (r || !at[n])
			return runtime_verdict(r);
		runtime_append(ret, at[n] >= ' ' && at[n] <= '~' ? (const char *)at + n : "?", 1);
	}
	return 0;
}

/* As the program has them (struct lines): lines first, and inlined calls behind four of them. */
#define HEAD 16
#define LINES 4
#define LINE 12
#define INLINED 2
#define CALL 24
#define CALL_NAME 8
#define ALL (HEAD + LINES * LINE + INLINED * CALL)

static int read_lines(uint64_t address, struct object_memory *m, struct runtime_object *ret)
{
	const uint8_t *at;
	uint32_t call[INLINED + 1] = { 0 };
	int r = object_memory_get(m, address, ALL, 0, &at);

	/* Code without lines is better than no code. */
	if (r)
		return r == OBJECT_MEMORY_WANTED ? RUNTIME_WANTS : 0;
	for (uint32_t i = 0; !r && i < unaligned_u32(at + 12) && i < INLINED; i++) {
		const uint8_t *c = at + HEAD + LINES * LINE + i * CALL;
		const uint32_t caller = unaligned_u32(c) <= i ? unaligned_u32(c) : 0;
		char text[CALL - CALL_NAME];
		uint32_t n = 0;

		for (; n < sizeof(text) && c[CALL_NAME + n]; n++)
			text[n] = c[CALL_NAME + n] >= ' ' && c[CALL_NAME + n] <= '~'
					  ? (char)c[CALL_NAME + n]
					  : '?';
		r = runtime_add_inlined(
			ret, call[caller], unaligned_u32(c + 4),
			(struct str){ .data = text, .len = n },
			(struct str){ .data = ret->source.bytes, .len = ret->source.len }, 0,
			&call[i + 1]);
	}
	for (uint32_t i = 0; !r && i < unaligned_u32(at + 8) && i < LINES; i++) {
		const uint8_t *l = at + HEAD + i * LINE;
		const uint32_t inside = unaligned_u32(l + 8) <= INLINED ? unaligned_u32(l + 8) : 0;

		r = runtime_add_line_in(ret, unaligned_u32(l), unaligned_u32(l + 4), call[inside]);
		if (i == 0)
			ret->start_line = unaligned_u32(l + 4);
	}
	return r;
}

/* All of it moves: only data that was copied with a sample is consistent. If that was lost, the
 * address is not valid, and the memory there cannot be read. */
static int name(const struct runtime_build *b, uint64_t address, uint64_t check,
		struct object_memory *m, struct runtime_object *ret)
{
	struct toyjit_naming n;
	const uint8_t *code, *function;
	uint64_t lines;
	int r;

	memcpy(&n, b->naming, sizeof(n));
	r = object_memory_get(m, address, n.code_bytes, 0, &code);
	if (r)
		return runtime_verdict(r);
	if (toyjit_check(unaligned_u64(code + n.serial)) != check)
		return RUNTIME_GONE;
	lines = unaligned_u64(code + n.lines);
	r = object_memory_get(m, unaligned_u64(code + n.function), n.function_bytes, 0, &function);
	if (r)
		return runtime_verdict(r);
	const uint64_t strings = unaligned_u64(function + n.name),
		       source = unaligned_u64(function + n.source);

	r = read_string(strings, m, &ret->system_name);
	if (r == 0)
		r = read_string(source, m, &ret->source);
	if (r == 0)
		r = read_lines(lines, m, ret);
	if (r)
		return r;
	ret->name = ret->system_name;
	return 0;
}

static int print(const struct runtime_build *b, struct buf *ret)
{
	struct toyjit_config c;

	memcpy(&c, b->config.own, sizeof(c));
	return buf_printf(ret, "region 0x%" PRIx64 "\n", (uint64_t)c.region);
}

/* No offset leads outside of the bytes that were read. */
static bool is_sane(const struct runtime_build *b)
{
	struct toyjit_naming n;

	memcpy(&n, b->naming, sizeof(n));
	return n.serial + 8u <= n.code_bytes && n.function + 8u <= n.code_bytes &&
	       n.lines + 8u <= n.code_bytes && n.name + 8u <= n.function_bytes &&
	       n.source + 8u <= n.function_bytes;
}

const struct runtime_ops toyjit_runtime = {
	.describe = describe, .name = name, .is_sane = is_sane, .print = print
};
