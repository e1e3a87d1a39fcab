/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file contains V8 if it defines v8::internal::Version, which all builds export that anything
 * else links to, and its interpreter's entry.
 *
 * Builds for Node.js describe themselves to debuggers (v8dbg_*, tools/gen-postmortem-metadata.py).
 * Their values take precedence; a table by version has the rest.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "common/names/runtime/v8/v8.h"

#define BUILTINS_MAX (16u << 20) /* bytes of all builtins */
#define SYMBOL(name) "_ZN2v88internal" name

/* --- what a build tells of itself --- */

/* A number that a build may tell, and its place in the config. */
static const struct {
	const char *name;
	uint16_t at, bytes;
} told[] = {
#define WORD(name, field) \
	{ \
		"v8dbg_" name, offsetof(struct v8_config, field), 2 \
	}
#define BYTE(name, field) \
	{ \
		"v8dbg_" name, offsetof(struct v8_config, field), 1 \
	}
	WORD("FirstNonstringType", type_no_string),
	WORD("type_BytecodeArray__BYTECODE_ARRAY_TYPE", type_bytecodes),
	WORD("type_FixedArray__FIXED_ARRAY_TYPE", type_fixed_array),
	WORD("type_ScopeInfo__SCOPE_INFO_TYPE", type_scope_info),
	WORD("class_BytecodeArray__data__uintptr_t", bytecodes_start),
	BYTE("class_JSFunction__shared__SharedFunctionInfo", function_shared),
	BYTE("class_Script__line_ends__Object", script_ends),
	BYTE("class_Script__name__Object", script_name),
	BYTE("CodeKindBaseline", kind_baseline),
	BYTE("CodeKindInterpretedFunction", kind_interpreted),
#undef WORD
#undef BYTE
};

static bool read_number(const struct elfview *im, const char *name, int32_t *ret)
{
	struct elfview_symbol s;

	return elfview_exported(im, name, &s) == 0 &&
	       elfview_read(im, s.value, ret, sizeof(*ret)) == 0;
}

static void read_told(const struct elfview *im, struct v8_config *c)
{
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		int32_t v;

		if (!read_number(im, told[i].name, &v) || v < 0 || v >= 1 << (8 * told[i].bytes))
			continue;

		const uint16_t word = (uint16_t)v;

		memcpy((uint8_t *)c + told[i].at, &word, told[i].bytes);
	}
}

static bool read_version(const struct elfview *im, struct v8_version *ret)
{
	int32_t v[4];

	if (!read_number(im, SYMBOL("7Version6major_E"), &v[0]) ||
	    !read_number(im, SYMBOL("7Version6minor_E"), &v[1]) ||
	    !read_number(im, SYMBOL("7Version6build_E"), &v[2]) ||
	    !read_number(im, SYMBOL("7Version6patch_E"), &v[3]))
		return false;
	*ret = (struct v8_version){ (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2],
				    (uint32_t)v[3] };
	return true;
}

/* --- builtins --- */

struct builtins {
	uint64_t start, end; /* addresses of all of them */
	uint64_t entry, entry_end, handlers;
};

static int note_builtin(void *ctx, const char *name, const struct elfview_symbol *s)
{
	struct builtins *b = ctx;

	if (s->value < b->start || !b->start)
		b->start = s->value;
	if (s->value + s->size > b->end)
		b->end = s->value + s->size;
	if (strcmp(name, "Builtins_InterpreterEntryTrampoline") == 0) {
		b->entry = s->value;
		b->entry_end = s->value + s->size;
	}
	if (strcmp(name, "Builtins_WideHandler") == 0)
		b->handlers = s->value;
	return 0;
}

/* Finds the builtins by their symbols. They are in one piece, bytecode handlers last. */
static int find_builtins(struct elfview *im, struct builtins *ret, uint64_t *ret_offset)
{
	uint64_t left;
	int r = elfview_symbols(im, false, "Builtins_", note_builtin, ret);

	if (r < 0)
		return r;
	if (r || !ret->entry || ret->handlers <= ret->entry || ret->handlers >= ret->end ||
	    ret->end - ret->start > BUILTINS_MAX ||
	    symfile_offset(im->file, ret->start, ret_offset, &left) != 0 ||
	    ret->end - ret->start > left)
		return RUNTIME_NOT_MINE;
	return 0;
}

/* Where the interpreter's entry makes its frame: push rbp; mov rbp, rsp. */
static uint16_t find_frame(const struct elfview *im, const struct builtins *b)
{
	static const uint8_t makes[] = { 0x55, 0x48, 0x89, 0xe5 };
	uint8_t code[512];
	const uint64_t size = b->entry_end - b->entry;
	const size_t n = size < sizeof(code) ? (size_t)size : sizeof(code);

	if (elfview_read(im, b->entry, code, n) != 0)
		return 0;

	const uint8_t *at = memmem(code, n, makes, sizeof(makes));

	return at ? (uint16_t)(at - code) : 0;
}

/* --- bytecodes --- */

/* How many bytes each bytecode has: for operands of 1, 2 and 4 bytes. */
static void read_bytecodes(const struct elfview *im, struct v8_naming *n)
{
	struct elfview_symbol s;

	if (elfview_defined(im, SYMBOL("11interpreter9Bytecodes14kBytecodeSizesE"), &s) != 0 ||
	    s.size % V8_SCALES || !s.size || s.size / V8_SCALES > V8_BYTECODE_COUNT)
		return;
	n->bytecodes = (uint16_t)(s.size / V8_SCALES);
	for (uint32_t i = 0; i < V8_SCALES; i++)
		if (elfview_read(im, s.value + (uint64_t)i * n->bytecodes, n->size[i],
				 n->bytecodes) != 0)
			n->bytecodes = 0;
}

/* --- the table of code --- */

/* The isolate group has it behind references, to which patches of V8 13.6 added one. Their names
 * are a table in the file, whose size tells. */
#define NAMES_136 0x3448 /* bytes, where the layout is right */

static uint16_t find_table(const struct elfview *im, const struct v8_version *v, uint16_t usual)
{
	struct elfview_symbol names;

	if (v->major != 13 || v->minor != 6 ||
	    elfview_defined(im, SYMBOL("22ExternalReferenceTable9ref_name_E"), &names) != 0 ||
	    names.size % 8 || names.size > 2 * NAMES_136 || usual + names.size < NAMES_136)
		return usual;
	return (uint16_t)(usual + names.size - NAMES_136);
}

/* --- the whole --- */

#define TOLD_PIECE(what, most) \
	{ \
		.pointer = (what)*8, .size_bytes = RUNTIME_SIZE_TOLD, .size_at = ((what) + 1) * 8, \
		.bytes = (most) \
	}

static const struct runtime_copy copy = {
	.steps = 12,
	.step = { { .bytes = V8_TOLD_WORDS * 8 },
		  TOLD_PIECE(V8_TOLD_NAME, V8_NAME_BYTES),
		  TOLD_PIECE(V8_TOLD_NAME + 2, V8_NAME_BYTES),
		  TOLD_PIECE(V8_TOLD_NAME + 4, V8_NAME_BYTES),
		  TOLD_PIECE(V8_TOLD_NAME + 6, V8_NAME_BYTES),
		  TOLD_PIECE(V8_TOLD_SCRIPT, V8_SCRIPT_BYTES),
		  TOLD_PIECE(V8_TOLD_SCRIPT + 2, V8_SCRIPT_BYTES),
		  TOLD_PIECE(V8_TOLD_SCRIPT + 4, V8_SCRIPT_BYTES),
		  TOLD_PIECE(V8_TOLD_EXTRA, V8_EXTRA_BYTES),
		  TOLD_PIECE(V8_TOLD_BYTECODES, V8_BYTECODES_BYTES),
		  TOLD_PIECE(V8_TOLD_POSITIONS, V8_POSITIONS_BYTES),
		  TOLD_PIECE(V8_TOLD_ENDS, V8_ENDS_BYTES) },
};

static int describe(struct elfview *im, struct runtime_build *ret)
{
	struct v8_config c = { 0 };
	struct v8_naming n = { 0 };
	struct v8_version v;
	struct builtins b = { 0 };
	struct elfview_symbol group;
	uint64_t offset;

	if (!read_version(im, &v))
		return RUNTIME_NOT_MINE;
	snprintf(ret->name, sizeof(ret->name), "V8 %u.%u.%u.%u", v.major, v.minor, v.build,
		 v.patch);
	if (!v8_layout(&v, &c, &n))
		return 0;

	int r = find_builtins(im, &b, &offset);

	if (r)
		return r < 0 ? r : 0;
	read_told(im, &c);
	if (c.group_table &&
	    elfview_defined(im, SYMBOL("12IsolateGroup22default_isolate_group_E"), &group) == 0)
		c.group = group.value - (b.start - offset);
	c.group_table = find_table(im, &v, c.group_table);
	c.entry_start = b.entry - b.start + offset;
	c.entry_size = (uint32_t)(b.entry_end - b.entry);
	c.entry_frame = find_frame(im, &b);
	c.handlers = b.handlers - b.start + offset;
	read_bytecodes(im, &n);

	struct runtime_config *config = &ret->config;

	config->version = v.major << 16 | (v.minor & 255) << 8;
	config->takes = RUNTIME_TAKES_GENERATED | RUNTIME_TAKES_LOOP;
	config->ranges = 2;
	config->shown = 1;
	config->loop[0] = (struct runtime_range){ .start = c.handlers,
						  .end = b.end - b.start + offset };
	config->loop[1] = (struct runtime_range){ .start = offset, .end = c.handlers };
	config->copy = copy;
	memcpy(config->own, &c, sizeof(c));
	memcpy(ret->naming, &n, sizeof(n));
	ret->known = true;
	return 0;
}

static bool is_sane(const struct runtime_build *b)
{
	struct v8_naming n;

	memcpy(&n, b->naming, sizeof(n));
	return n.bytecodes <= V8_BYTECODE_COUNT && n.position_flags < 8;
}

static int print(const struct runtime_build *b, struct buf *ret)
{
	struct v8_config c;
	struct v8_naming n;

	memcpy(&c, b->config.own, sizeof(c));
	memcpy(&n, b->naming, sizeof(n));
	return buf_printf(
		ret,
		"entry 0x%" PRIx64 " handlers 0x%" PRIx64 " group 0x%" PRIx64 " bytecodes %u\n",
		(uint64_t)c.entry_start, (uint64_t)c.handlers, (uint64_t)c.group, n.bytecodes);
}

const struct runtime_ops v8_runtime = {
	.describe = describe, .name = v8_name, .is_sane = is_sane, .print = print
};
