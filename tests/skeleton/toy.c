/* SPDX-License-Identifier: Apache-2.0 */
/* The toy: recognizes and describes its builds, and names its functions. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "common/base/bytes/unaligned.h"
#include "common/names/runtime/runtime.h"
#include "tests/skeleton/toy.h"

#define LINES_MAX (16u << 10)
#define STRING_MAX 128

/* Facts about a build that naming needs: offsets in bytes. */
struct toy_naming {
	uint16_t function_bytes;
	uint16_t serial, name, source, lines;
};
static_assert(sizeof(struct toy_naming) <= RUNTIME_OWN_NAMING, "it fits");

/* Every sampled file is checked here, so a check that most files fail comes first. */
static int describe(struct elfview *im, struct runtime_build *ret)
{
	const struct toy_naming n = {
		.function_bytes = 48, .serial = 0, .name = 8, .source = 16, .lines = 24
	};
	struct toy_config c = { .frame_previous = 0,
				.frame_function = 8,
				.frame_position = 16,
				.frame_entry = 24,
				.function_unit = 40,
				.function_serial = n.serial };
	struct elfview_symbol loop, top, chains;
	uint64_t offset, left;

	if (elfview_exported(im, "toy_loop", &loop) != 0)
		return RUNTIME_NOT_MINE;
	snprintf(ret->name, sizeof(ret->name), "Toy 1.0.0");
	if (elfview_exported(im, "toy_top", &top) != 0 || loop.size == 0 ||
	    symfile_offset(im->file, loop.value, &offset, &left) != 0 || loop.size > left)
		return 0;
	/* From an address to the number to which the mapping's start minus its offset is added. */
	c.top = top.value - (loop.value - offset);
	/* A toy that keeps no addresses of its C frames. */
	if (elfview_exported(im, "toy_chains", &chains) == 0) {
		c.chains = 1;
		ret->config.by_loop = RUNTIME_CHAIN_BY_LOOP;
	}
	ret->config.version = 1u << 16;
	ret->config.ranges = 1;
	ret->config.loop[0] = (struct runtime_range){ offset, offset + loop.size };
	/* The object, its strings, and its lines behind their size. */
	ret->config.copy = (struct runtime_copy){
		.steps = 4,
		.step = { { .bytes = n.function_bytes },
			  { .pointer = n.name, .bytes = STRING_MAX },
			  { .pointer = n.source, .bytes = STRING_MAX },
			  { .pointer = n.lines, .bytes = 4096, .size_bytes = 8, .size_add = 8 } }
	};
	memcpy(ret->config.own, &c, sizeof(c));
	memcpy(ret->naming, &n, sizeof(n));
	ret->known = true;
	return 0;
}

/* A string of printable ASCII, which ends with a NUL. It is read in pieces of eight bytes, because
 * the memory behind it may not exist. */
static int read_string(uint64_t address, struct object_memory *m, struct runtime_text *ret)
{
	const uint8_t *at;

	ret->len = 0;
	for (uint32_t n = 0; address && n < STRING_MAX; n++) {
		int r = object_memory_get(m, address, n + 1, (n | 7) + 1, &at);

		if (r || !at[n])
			return runtime_verdict(r);
		runtime_append(ret, at[n] >= ' ' && at[n] <= '~' ? (const char *)at + n : "?", 1);
	}
	return 0;
}

static int read_lines(uint64_t address, struct object_memory *m, struct runtime_object *ret)
{
	const uint8_t *at;
	int r = address ? object_memory_get(m, address, 8, 64, &at) : OBJECT_MEMORY_NONE;
	uint64_t size = r ? 0 : unaligned_u64(at);

	if (r == 0)
		r = size > LINES_MAX ? OBJECT_MEMORY_NONE
				     : object_memory_get(m, address, 8 + (uint32_t)size, 0, &at);
	if (r == OBJECT_MEMORY_WANTED)
		return RUNTIME_WANTS;
	/* A function without lines is better than no function. */
	for (uint64_t i = 0; r == 0 && i + 8 <= size; i += 8) {
		uint64_t line = unaligned_u64(at + 8 + i);

		r = runtime_add_line(ret, (uint32_t)line, (uint32_t)(line >> 32));
		if (r)
			return r;
		if (i == 0)
			ret->start_line = line >> 32;
	}
	return 0;
}

static int name(const struct runtime_build *b, uint64_t address, uint64_t check,
		struct object_memory *m, struct runtime_object *ret)
{
	uint64_t strings, source, lines;
	struct toy_naming n;
	const uint8_t *f;
	int r, wants = 0;

	memcpy(&n, b->naming, sizeof(n));
	r = object_memory_get(m, address, n.function_bytes, 0, &f);
	if (r)
		return runtime_verdict(r);
	if (toy_check(unaligned_u64(f + n.serial)) != check)
		return RUNTIME_GONE;
	strings = unaligned_u64(f + n.name);
	source = unaligned_u64(f + n.source);
	lines = unaligned_u64(f + n.lines);
	/* Ask for the memory of all three in one round. */
	r = read_string(strings, m, &ret->system_name);
	if (r != RUNTIME_WANTS && r)
		return r;
	wants |= r;
	r = read_string(source, m, &ret->source);
	if (r != RUNTIME_WANTS && r)
		return r;
	wants |= r;
	r = read_lines(lines, m, ret);
	if (r || wants)
		return r ? r : wants;
	ret->name = ret->system_name;
	return 0;
}

static int print(const struct runtime_build *b, struct buf *ret)
{
	struct toy_config c;

	memcpy(&c, b->config.own, sizeof(c));
	return buf_printf(ret, "top 0x%" PRIx64 "\n", (uint64_t)c.top);
}

/* No offset leads outside of a function. */
static bool is_sane(const struct runtime_build *b)
{
	struct toy_naming n;

	memcpy(&n, b->naming, sizeof(n));
	return n.serial + 8u <= n.function_bytes && n.name + 8u <= n.function_bytes &&
	       n.source + 8u <= n.function_bytes && n.lines + 8u <= n.function_bytes;
}

const struct runtime_ops toy_runtime = {
	.describe = describe, .name = name, .is_sane = is_sane, .print = print
};
