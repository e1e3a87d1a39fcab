/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file contains V8 if it tells V8's version (version.c), and has V8's builtins (builtins.h).
 * Stripped files also have both.
 *
 * Builds for Node.js describe themselves to debuggers (v8dbg_*, tools/gen-postmortem-metadata.py).
 * Their values take precedence; a table by version has the rest.
 */
#include "common/names/runtime/v8/v8.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/names/runtime/v8/builtins.h"

/* --- values that a build exports --- */

/* A number that a build may export, and its place in the config. */
static const struct {
	const char *name;
	uint16_t at, bytes, times;
} told[] = {
#define WORD(name, field) \
	{ \
		"v8dbg_" name, offsetof(struct v8_config, field), 2, 1 \
	}
#define BYTE(name, field) \
	{ \
		"v8dbg_" name, offsetof(struct v8_config, field), 1, 1 \
	}
/* Frames have twice the number of their type. */
#define MARKER(name, field) \
	{ \
		"v8dbg_frametype_" name, offsetof(struct v8_config, field), 1, 2 \
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
	MARKER("WasmFrame", wasm_marker),
	MARKER("IrregexpFrame", regexp_marker),
#undef WORD
#undef BYTE
#undef MARKER
};

static bool read_number(const struct elfview *im, const char *name, int32_t *ret)
{
	struct elfview_symbol s;

	return elfview_exported(im, name, &s) == 0 &&
	       elfview_read(im, s.value, ret, sizeof(*ret)) == 0;
}

/* Returns the number of values that the build exports. */
static unsigned read_told(const struct elfview *im, struct v8_config *c)
{
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		int32_t v;

		if (!read_number(im, told[i].name, &v) || v < 0 || v > UINT16_MAX ||
		    v * told[i].times >= 1 << (8 * told[i].bytes))
			continue;

		const uint16_t word = (uint16_t)(v * told[i].times);

		memcpy((uint8_t *)c + told[i].at, &word, told[i].bytes);
		n++;
	}
	return n;
}

/* --- builtins --- */

/* Finds where the interpreter's entry sets up its frame: push rbp; mov rbp, rsp. */
static uint16_t find_frame(const struct elfview *im, const struct v8_builtins *b)
{
	static const uint8_t makes[] = { 0x55, 0x48, 0x89, 0xe5 };
	uint8_t code[512];
	const struct v8_builtin *entry = &b->at[b->entry];
	const size_t n = numbers_smaller(entry->size, sizeof(code));

	if (elfview_read(im, b->start + entry->offset, code, n) != 0)
		return 0;

	const uint8_t *at = memmem(code, n, makes, sizeof(makes));

	return at ? (uint16_t)(at - code) : 0;
}

/* The interpreter's entry begins by loading the function's description: mov r11d, [rdi + d]; or
 * r11, r14. Without compression it loads 64 bits. */
static bool compresses_pointers(const struct elfview *im, const struct v8_builtins *b)
{
	static const uint8_t loads[] = { 0x44, 0x8b, 0x5f }, completes[] = { 0x4d, 0x0b, 0xde };
	uint8_t code[7];

	return elfview_read(im, b->start + b->at[b->entry].offset, code, sizeof(code)) == 0 &&
	       memcmp(code, loads, sizeof(loads)) == 0 &&
	       memcmp(code + 4, completes, sizeof(completes)) == 0;
}

/* With V8's sandbox, objects have numbers of entries in tables instead of addresses outside of the
 * heap. So the interpreter's entry soon turns the number of the bytecodes into an index: shr r10d,
 * NUMBER. */
static bool has_sandbox(const struct elfview *im, const struct v8_builtins *b)
{
	static const uint8_t shifts[] = { 0x41, 0xc1, 0xea };
	uint8_t code[32];

	return elfview_read(im, b->start + b->at[b->entry].offset, code, sizeof(code)) == 0 &&
	       memmem(code, sizeof(code), shifts, sizeof(shifts));
}

/* --- bytecodes --- */

/*
 * Reads how many bytes each bytecode has, for operands of 1, 2 and 4 bytes: three tables, one after
 * the other. All begin with the two prefixes and the debugger's bytecodes, whose sizes appear
 * nowhere else. Versions before 9, which have no baseline code, use four bytes for each size.
 */
static void read_bytecodes(const struct elfview *im, struct v8_naming *n)
{
	static const uint8_t first[V8_SCALES][11] = {
		{ 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6 },
		{ 1, 1, 1, 1, 1, 3, 5, 7, 9, 7, 9 },
		{ 1, 1, 1, 1, 1, 5, 9, 13, 17, 11, 15 },
	};
	uint64_t at[V8_SCALES] = { 0 };

	for (unsigned i = 0; i < V8_SCALES; i++)
		if (elfview_find(im, ".rodata",
				 (struct span){ .data = first[i], .len = sizeof(first[i]) },
				 i ? at[i - 1] : 0, &at[i]) != 0)
			return;

	const uint64_t count = at[1] - at[0];

	if (count < sizeof(first[0]) || count > V8_BYTECODE_COUNT || at[2] - at[1] != count)
		return;
	n->bytecodes = (uint16_t)count;
	for (unsigned i = 0; i < V8_SCALES; i++)
		if (elfview_read(im, at[i], n->size[i], n->bytecodes) != 0)
			n->bytecodes = 0;
}

/* --- opcodes of translations --- */

/*
 * Reads how many operands each opcode has: a table of 32-bit numbers, which begins with those of
 * frames. The last two opcodes update feedback and repeat the previous translation.
 */
static void read_opcodes(const struct elfview *im, struct v8_naming *n)
{
	/* V8 13.5 and later; earlier versions. */
	static const uint32_t first[2][9] = { { 6, 4, 3, 3, 2, 1, 3, 4, 3 },
					      { 5, 3, 3, 3, 2, 1, 3, 4, 3 } };
	uint32_t operands[V8_OPCODES];
	uint64_t at;
	unsigned i = 0, k;

	while (i < 2 && elfview_find(im, ".rodata",
				     (struct span){ .data = (const uint8_t *)first[i],
						    .len = sizeof(first[i]) },
				     0, &at) != 0)
		i++;
	if (i == 2 || elfview_read(im, at, operands, sizeof(operands)) != 0)
		return;
	for (k = sizeof(first[0]) / 4; k < V8_OPCODES && operands[k]; k++)
		;
	for (; k < V8_OPCODES && operands[k] < 2; k++)
		;
	n->opcode_begin = (uint8_t)k;
	for (k += 2; k < V8_OPCODES && operands[k] < 2; k++)
		;
	if (k + 1 >= V8_OPCODES || operands[k] != 2 || operands[k + 1] != 1)
		return;
	n->opcodes = (uint8_t)(k + 2);
	for (i = 0; i < n->opcodes; i++)
		n->operands[i] = (uint8_t)operands[i];
}

/* --- the table of code --- */

/* Finds the address of the pointer to the isolate group. IsolateGroup::GetDefault(), which all
 * builds export, loads it and then counts one more user of the group: mov REG, [rip + d], or lea
 * REG and mov REG, [REG]. */
static uint64_t find_group(const struct elfview *im)
{
	struct elfview_symbol s;
	uint8_t code[64];
	int32_t distance;

	if (elfview_exported(im, "_ZN2v812IsolateGroup10GetDefaultEv", &s) != 0 ||
	    elfview_read(im, s.value, code, sizeof(code)) != 0)
		return 0;
	for (size_t i = 0; i + 12 <= sizeof(code); i++) {
		const uint8_t *p = code + i, reg = p[2] >> 3 & 7;
		const bool loads = p[0] == 0x48 && (p[2] & 0xc7) == 5;
		size_t n = 7;

		if (!loads || (p[1] != 0x8b && p[1] != 0x8d))
			continue;
		if (p[1] == 0x8d) {
			if (p[n] != 0x48 || p[n + 1] != 0x8b || p[n + 2] != (reg << 3 | reg))
				continue;
			n += 3;
		}
		/* lock add dword [REG], 1; lock inc dword [REG]; other code may come before the
		 * latter. */
		const uint8_t *lock = memchr(p + n, 0xf0, sizeof(code) - i - n - 2);

		if (!lock || !((lock[1] == 0x83 || lock[1] == 0xff) && lock[2] == reg))
			continue;
		memcpy(&distance, p + 3, sizeof(distance));
		return s.value + i + 7 + (uint64_t)(int64_t)distance;
	}
	return 0;
}

/* In the isolate group, the table follows references, to which patch releases of V8 13.6 added one.
 * Their names are a table in the file, so the distance between two names shows which layout it
 * is. */
#define FIRST_136 "v8_flags.log_or_trace_osr"
#define LAST_136 "StatsCounter::megamorphic_stub_cache_misses"
#define NAMES_136 0x3400 /* distance in bytes between them if the layout is as in the table */

static uint16_t find_table(struct elfview *im, const struct v8_version *v, uint16_t usual)
{
	uint64_t text, at[2];
	size_t found;

	if (v->major != 13 || v->minor != 6)
		return usual;
	for (unsigned i = 0; i < 2; i++)
		if (elfview_text(im, ".rodata", i ? LAST_136 : FIRST_136, &text) != 0 ||
		    elfview_pointers(im, text, &at[i], 1, &found) != 0 || found != 1)
			return usual;

	const uint64_t names = at[1] - at[0];

	if (names % 8 || names > 2 * NAMES_136 || usual + names < NAMES_136)
		return usual;
	return (uint16_t)(usual + names - NAMES_136);
}

/* --- describing a build --- */

#define TOLD_PIECE(what, most) \
	{ \
		.pointer = (what)*8, .size_bytes = RUNTIME_SIZE_TOLD, .size_at = ((what) + 1) * 8, \
		.bytes = (most) \
	}

static const struct runtime_copy copy = {
	.steps = 15,
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
		  TOLD_PIECE(V8_TOLD_ENDS, V8_ENDS_BYTES),
		  TOLD_PIECE(V8_TOLD_OWN_POSITIONS, V8_POSITIONS_BYTES),
		  TOLD_PIECE(V8_TOLD_OWN_CALLS, V8_EXTRA_BYTES),
		  TOLD_PIECE(V8_TOLD_TRANSLATIONS, V8_TRANSLATIONS_BYTES) },
};

static int describe(struct elfview *im, struct runtime_build *ret)
{
	struct v8_config c = { 0 };
	struct v8_naming n = { 0 };
	struct v8_version v;
	struct v8_builtins *b;
	uint64_t offset, left;

	int r = v8_version(im, &v);

	if (r)
		return r < 0 ? r : RUNTIME_NOT_MINE;
	snprintf(ret->name, sizeof(ret->name), "V8 %u.%u.%u.%u", v.major, v.minor, v.build,
		 v.patch);
	if (!v8_layout(&v, false, &c, &n) && !v8_layout(&v, true, &c, &n))
		return 0;

	r = v8_builtins_find(im, &b);
	if (r)
		return r < 0 ? r : 0;

	const bool compressed = compresses_pointers(im, b);

	if (symfile_offset(im->file, b->start, &offset, &left) != 0 ||
	    !v8_layout(&v, compressed, &c, &n)) {
		v8_builtins_free(b);
		return 0;
	}
	if (compressed && has_sandbox(im, b))
		c.string_data = 0;
	/* How WebAssembly's modules are described depends on how V8 was built, and is known only of
	 * builds for Node.js. */
	if (!read_told(im, &c))
		c.wasm_module = 0;
	if (c.group_table) {
		const uint64_t group = find_group(im);

		c.group = group ? group - (b->start - offset) : 0;
	}
	c.group_table = find_table(im, &v, c.group_table);
	c.entry_start = b->at[b->entry].offset + offset;
	c.entry_size = b->at[b->entry].size;
	c.entry_frame = find_frame(im, b);
	c.handlers = b->at[b->handlers].offset + offset;
	read_bytecodes(im, &n);
	if (c.code_maglev)
		read_opcodes(im, &n);

	struct runtime_config *config = &ret->config;

	config->version = v.major << 16 | (v.minor & 255) << 8;
	config->takes = RUNTIME_TAKES_GENERATED | RUNTIME_TAKES_LOOP;
	config->ranges = 2;
	config->shown = 1;
	config->loop[0] = (struct runtime_range){ .start = c.handlers,
						  .end = b->end - b->start + offset };
	config->loop[1] = (struct runtime_range){ .start = offset, .end = c.handlers };
	config->copy = copy;
	memcpy(config->own, &c, sizeof(c));
	memcpy(ret->naming, &n, sizeof(n));
	ret->known = true;
	v8_builtins_free(b);
	return 0;
}

static bool is_sane(const struct runtime_build *b)
{
	struct v8_naming n;

	memcpy(&n, b->naming, sizeof(n));
	return n.bytecodes <= V8_BYTECODE_COUNT && n.opcodes <= V8_OPCODES &&
	       n.position_flags < 8 && n.kind_shift < 32 && n.before_first <= 1;
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
