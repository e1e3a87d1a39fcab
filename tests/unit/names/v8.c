/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and code as the walk copies them (bpf/v8/v8.h). The tables are those of real builds: of
 * `function inner(n) { let s = 0; for (let i = 0; i < n; i++) { s += i % 7; } return s; }` and of a
 * function into which it is inlined. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "common/names/runtime/v8/v8.h"

#define NAME 0x10000u
#define SCRIPT 0x20000u
#define EXTRA 0x30000u
#define BYTECODES 0x40000u
#define POSITIONS 0x50000u
#define ENDS 0x60000u
#define TRANSLATIONS 0x70000u
#define OWN 0x80000u

struct copy {
	uint64_t told[V8_TOLD_WORDS];
	struct object_memory memory;
};

static void tell(struct copy *c, enum v8_kind kind, uint64_t identity, const char *name,
		 const char *script)
{
	c->told[V8_TOLD_IDENTITY] = identity;
	c->told[V8_TOLD_KIND] = kind;
	c->told[V8_TOLD_LINE] = V8_NO_LINE;
	c->told[V8_TOLD_NAME] = NAME;
	c->told[V8_TOLD_NAME_SIZE] = strlen(name);
	c->told[V8_TOLD_SCRIPT] = SCRIPT;
	c->told[V8_TOLD_SCRIPT_SIZE] = strlen(script);
	object_memory_add(&c->memory, NAME, (struct span){ (const uint8_t *)name, strlen(name) });
	object_memory_add(&c->memory, SCRIPT,
			  (struct span){ (const uint8_t *)script, strlen(script) });
}

/* Adds bytes of a piece with its address and size. */
static void add(struct copy *c, unsigned what, uint64_t address, const void *bytes, size_t n)
{
	c->told[what] = address;
	c->told[what + 1] = n;
	object_memory_add(&c->memory, address, (struct span){ bytes, n });
}

/* Adds the ends of lines, the first of which is line `first`, from 1 on. */
static void add_ends(struct copy *c, uint32_t first, const uint32_t *ends, size_t n)
{
	uint64_t smis[64];

	cr_assert_leq(n, 64);
	for (size_t i = 0; i < n; i++)
		smis[i] = (uint64_t)ends[i] << 32;
	c->told[V8_TOLD_LINE] = first - 1;
	add(c, V8_TOLD_ENDS, ENDS, smis, n * sizeof(smis[0]));
}

static int name_with(const struct v8_naming *n, struct copy *c, uint64_t identity,
		     struct runtime_object *ret)
{
	struct runtime_build b = { .known = true, .config.runtime = RUNTIME_V8 };

	memcpy(b.naming, n, sizeof(*n));
	object_memory_add(&c->memory, v8_key(identity),
			  (struct span){ (const uint8_t *)c->told, sizeof(c->told) });
	return runtime_name(&b, v8_key(identity), v8_check(identity), &c->memory, ret);
}

static int name(struct copy *c, uint64_t identity, struct runtime_object *ret)
{
	static const struct v8_naming n = { .kind_shift = 17, .before_first = 1 };

	return name_with(&n, c, identity, ret);
}

static bool is(const struct runtime_text *t, const char *s)
{
	return t->len == strlen(s) && memcmp(t->bytes, s, t->len) == 0;
}

static uint64_t line_at(const struct runtime_object *o, uint32_t position)
{
	struct runtime_call calls[8];
	const unsigned n = runtime_calls(o, position, calls, 8);

	return calls[n - 1].line;
}

static struct object_memory *other_object;

static struct object_memory *find_other(void *ctx, uint64_t address, uint64_t check)
{
	(void)ctx;
	(void)address;
	(void)check;
	return other_object;
}

static void done(struct copy *c, struct runtime_object *o)
{
	object_memory_done(&c->memory);
	runtime_object_done(o);
}

/* Of `inner`, which begins at character 28. */
static const uint8_t inner_positions[] = { 0x01, 0x74, 0x02, 0x38, 0x04, 0x40, 0x04, 0x14,
					   0x05, 0x00, 0x0a, 0x30, 0x05, 0x1c, 0x14, 0x33,
					   0x0b, 0x5f, 0x08, 0xb0, 0x01, 0x04, 0x24 };

Test(v8, versions_in_text_are_those_of_v8)
{
	static const char *const others[] = {
		"",	     "1.2.3.4",	    "127.0.0.1",    "8.8.8.8",	   "15.0.245",
		"15.0.245.", "15.0.245.2x", "152.0.7444.1", "015.0.245.2", "15..245.2"
	};
	struct v8_version v;

	cr_assert(v8_version_of("15.0.245.2-rusty", &v));
	cr_expect(v.major == 15 && v.minor == 0 && v.build == 245 && v.patch == 2);
	cr_assert(v8_version_of("15.6.75.63", &v));
	cr_expect(v.major == 15 && v.minor == 6 && v.build == 75 && v.patch == 63);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_not(v8_version_of(others[i], &v), "%s", others[i]);
}

Test(v8, positions_are_those_of_the_table)
{
	static const uint32_t expected[][2] = { { 0, 28 }, { 0, 42 }, { 2, 58 }, { 4, 63 } };
	struct v8_positions p = { .rest = { inner_positions, sizeof(inner_positions) },
				  .before_first = 1 };
	struct v8_position next;
	uint32_t count = 0, last = 0;

	while (v8_positions_next(&p, &next)) {
		if (count < 4) {
			cr_expect_eq(next.code, expected[count][0]);
			cr_expect_eq(next.character, expected[count][1]);
		}
		cr_expect_geq(next.code, last);
		cr_expect_eq(next.inlined, 0);
		last = next.code;
		count++;
	}
	cr_expect_eq(p.rest.len, 0, "the whole table");
	cr_expect_eq(count, 11);
}

Test(v8, places_of_newer_tables_have_flags_and_no_sign)
{
	static const uint8_t table[] = { 0x02, 0x74, 0x07, 0x38, 0x0b, 0x40 };
	struct v8_positions p = { .rest = { table, sizeof(table) }, .flags = 2, .before_first = 1 };
	struct v8_position next;

	cr_assert(v8_positions_next(&p, &next));
	cr_expect_eq(next.code, 0);
	cr_expect_eq(next.character, 28);
	cr_assert(v8_positions_next(&p, &next) && v8_positions_next(&p, &next));
	cr_expect_eq(next.code, 2);
	cr_expect_eq(next.character, 58);
}

Test(v8, a_position_names_its_inlined_call)
{
	struct v8_position p = v8_position_of(0x80000124);

	cr_expect_eq(p.inlined, 1);
	cr_expect_eq(p.character, 145);
	p = v8_position_of(0x220);
	cr_expect_eq(p.inlined, 0);
	cr_expect_eq(p.character, 271);
	cr_expect_eq(v8_position_of(0).character, V8_NO_POSITION);
}

/* Of `function plain(f) { const r = f(); return r; }`, compiled by the Maglev of V8 12.9 and by
 * that of 13.6: the stack guard, the call, and a call that cannot deoptimize. */
static const uint8_t plain_safepoints[][31] = {
	{ 0x03, 0,    0,    0, 0x93, 0,	   0,	 0,    0, 0, 0,	   0,	 0,    0,    0,	  0,
	  0x3f, 0x01, 0xb4, 0, 0,    0x60, 0x02, 0xb8, 0, 0, 0xaf, 0x00, 0x00, 0x01, 0x01 },
	{ 0x05, 0,    0,    0, 0x03, 0,	   0,	 0,    0x93, 0, 0,    0,    0,	  0,	0,   0,
	  0x1c, 0x01, 0x93, 0, 0,    0x3d, 0x02, 0x97, 0,    0, 0x8e, 0x00, 0x00, 0x01, 0x01 },
};

Test(v8, safepoints_are_those_of_the_table)
{
	static const uint32_t expected[][3] = { { 0x3f, 0x60, 0xaf }, { 0x1c, 0x3d, 0x8e } };
	static const uint32_t late[][3] = { { 0xb3, 0xb7, V8_NO_EXIT },
					    { 0x92, 0x96, V8_NO_EXIT } };
	struct v8_safepoints s;
	struct v8_safepoint p;

	for (uint32_t v = 0; v < 2; v++) {
		const struct span all = { plain_safepoints[v], sizeof(plain_safepoints[v]) };

		cr_assert(v8_safepoints_begin(&s, all, 4 * v, true));
		for (uint32_t i = 0; i < 3; i++) {
			cr_assert(v8_safepoints_next(&s, &p));
			cr_expect_eq(p.pc, expected[v][i]);
			cr_expect_eq(p.exit, i < 2 ? i : V8_NO_EXIT);
			cr_expect_eq(p.late, late[v][i]);
		}
		cr_expect_not(v8_safepoints_next(&s, &p));
		cr_expect_not(v8_safepoints_begin(&s, (struct span){ all.data, 15 }, 4 * v, true));
		cr_assert(v8_safepoints_begin(&s, (struct span){ all.data, 20 }, 4 * v, true));
		cr_expect_not(v8_safepoints_next(&s, &p), "cut");
	}
}

Test(v8, functions_of_classes_that_no_text_has_are_named_by_their_kind)
{
	static const char *const expected[] = { "(anonymous)", "<instance_members_initializer>",
						"<static_initializer>", "<static_initializer>",
						"(anonymous)" };

	for (uint16_t shift = 16; shift <= 17; shift++) {
		const struct v8_naming n = { .kind_shift = shift };

		for (uint64_t kind = 23; kind <= 27; kind++) {
			struct copy c = { 0 };
			struct runtime_object o = { 0 };

			tell(&c, V8_INTERPRETED, 77, "", "/srv/hot.js");
			c.told[V8_TOLD_KIND] |= kind << (32 + shift);
			cr_assert_eq(name_with(&n, &c, 77, &o), 0);
			cr_expect(is(&o.name, expected[kind - 23]), "%u", (unsigned)kind);
			done(&c, &o);
		}
	}
}

/* With one more eager exit, which is not listed. */
Test(v8, code_without_positions_has_the_lines_of_its_calls)
{
	static const uint32_t ends[] = { 40, 60, 200 };
	static const uint64_t exits[] = { (uint64_t)-1 << 32, 0,
					  0xb3ull << 32,      2ull << 32,
					  0x12ull << 32,      0xb7ull << 32 };
	static uint8_t safepoints[31];
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	memcpy(safepoints, plain_safepoints[0], sizeof(safepoints));
	safepoints[17]++;
	safepoints[22]++;
	tell(&c, V8_LAZY, 77, "inner", "/srv/hot.js");
	c.told[V8_TOLD_RANGE] = 28 | 100ull << 32;
	c.told[V8_TOLD_INLINED_COUNT] = 1ull << 32;
	add_ends(&c, 5, ends, 3);
	add(&c, V8_TOLD_POSITIONS, POSITIONS, inner_positions, sizeof(inner_positions));
	add(&c, V8_TOLD_EXTRA, EXTRA, safepoints, sizeof(safepoints));
	add(&c, V8_TOLD_BYTECODES, BYTECODES, exits, sizeof(exits));
	cr_assert_eq(name(&c, 77, &o), 0);
	cr_expect_eq(o.start_line, 5);
	cr_expect_eq(line_at(&o, 0x3e), 5, "the function's entry");
	cr_expect_eq(line_at(&o, 0x5e), 5, "no call");
	cr_expect_eq(line_at(&o, 0x5f), 6, "the call at character 58");
	cr_expect_eq(line_at(&o, 0x60), 5);
	cr_expect_eq(line_at(&o, 0xae), 5, "it has no exit");
	cr_expect_eq(line_at(&o, 0xb6), 6, "the call at character 58 returns to code given up");
	cr_expect_eq(line_at(&o, 0xb7), 5);
	done(&c, &o);
}

/* Opcodes of V8 12.4: frames, ..., two that begin a translation, ..., the one that repeats. */
static const struct v8_naming opcodes_124 = {
	.kind_shift = 17,
	.before_first = 1,
	.opcodes = 40,
	.opcode_begin = 12,
	.operands = { 5, 3, 3, 3, 2, 1, 3, 4, 3, 2, 1, 0, 3, 3, 1, 1, 1, 1, 1, 1,
		      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1 },
};
/* Two frames: bytecode 2 of the code's own function (literal 3), bytecode 4 of the first inlined
 * one; then the same, but bytecode 2 of the inlined one, which repeats the first frame; and one
 * that begins at the function's entry. 36: a value on the stack. */
#define OWN_FRAME 1, 2 << 1, 3 << 1, 1, 36, 8
static const uint8_t translations[] = { 12, 0,	4, 4, OWN_FRAME, 1, 4 << 1, 0, 1, 36, 9,
					12, 16, 4, 4, 40 + 2,	 1, 2 << 1, 0, 1, 39, 1,
					13, 0,	2, 2, 1,	 3, 3 << 1, 1 };
#define SECOND 16
#define THIRD 27

static void expect_frames(uint32_t at, const int32_t (*expected)[2], unsigned n)
{
	struct v8_translation t;
	int32_t bytecode, function;

	cr_assert(v8_translation_begin(&t, &opcodes_124,
				       (struct span){ translations, sizeof(translations) }, at));
	for (unsigned i = 0; i < n; i++) {
		cr_assert(v8_translation_next(&t, &bytecode, &function), "%u: %u", at, i);
		cr_expect_eq(bytecode, expected[i][0], "%u: %u: %d", at, i, bytecode);
		cr_expect_eq(function, expected[i][1], "%u: %u: %d", at, i, function);
	}
	cr_expect_not(v8_translation_next(&t, &bytecode, &function));
}

Test(v8, translations_tell_the_frames_of_inlined_calls)
{
	struct v8_translation t;
	int32_t bytecode, function;

	expect_frames(0, (const int32_t[][2]){ { 2, 3 }, { 4, 0 } }, 2);
	expect_frames(SECOND, (const int32_t[][2]){ { 2, 3 }, { 2, 0 } }, 2);
	expect_frames(THIRD, (const int32_t[][2]){ { -1, 3 } }, 1);
	cr_expect_not(v8_translation_begin(&t, &opcodes_124,
					   (struct span){ translations, sizeof(translations) }, 1));
	for (size_t n = 0; n < sizeof(translations); n++)
		if (v8_translation_begin(&t, &opcodes_124, (struct span){ translations, n },
					 SECOND))
			while (v8_translation_next(&t, &bytecode, &function))
				;
}

/* The exit's own bytecode is then the number of that builtin. */
Test(v8, calls_whose_exits_continue_in_a_builtin_have_the_lines_of_their_bytecodes)
{
	static const uint32_t ends[] = { 40, 60, 200 };
	/* 3: the builtin's frame. */
	static const uint8_t in_builtin[] = { 12, 0, 4, 2, OWN_FRAME, 3, 0x88, 7, 3 << 1, 2 };
	const uint64_t exits[] = { 0, 0, 0, 500ull << 32, 0, 0 };
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_LAZY, 77, "outer", "/srv/hot.js");
	c.told[V8_TOLD_RANGE] = 28 | 100ull << 32;
	add_ends(&c, 5, ends, 3);
	add(&c, V8_TOLD_POSITIONS, POSITIONS, inner_positions, sizeof(inner_positions));
	add(&c, V8_TOLD_EXTRA, EXTRA, plain_safepoints[0], sizeof(plain_safepoints[0]));
	add(&c, V8_TOLD_BYTECODES, BYTECODES, exits, sizeof(exits));
	add(&c, V8_TOLD_TRANSLATIONS, TRANSLATIONS, in_builtin, sizeof(in_builtin));
	cr_assert_eq(name_with(&opcodes_124, &c, 77, &o), 0);
	cr_expect_eq(line_at(&o, 0x5f), 6, "bytecode 2");
	done(&c, &o);
}

/* The second call is one of the inlined function. */
Test(v8, code_without_positions_has_its_inlined_calls)
{
	static const uint32_t ends[] = { 40, 60, 200 };
	const uint64_t exits[] = { 0, 0, 0, 2ull << 32, (uint64_t)SECOND << 32, 0 };
	const uint64_t key = v8_key(99);
	struct copy outer = { 0 }, inner = { 0 };
	struct runtime_object o = { 0 };
	struct runtime_call calls[4];

	tell(&inner, V8_INLINED, key, "inner", "/srv/inner.js");
	inner.told[V8_TOLD_RANGE] = 28 | 100ull << 32;
	add_ends(&inner, 5, ends, 3);
	add(&inner, V8_TOLD_POSITIONS, POSITIONS, inner_positions, sizeof(inner_positions));
	object_memory_add(&inner.memory, key,
			  (struct span){ (const uint8_t *)inner.told, sizeof(inner.told) });
	tell(&outer, V8_LAZY, 77, "outer", "/srv/hot.js");
	outer.told[V8_TOLD_RANGE] = 28 | 100ull << 32;
	outer.told[V8_TOLD_INLINED_COUNT] = 1;
	outer.told[V8_TOLD_INLINED] = key;
	add_ends(&outer, 15, ends, 3);
	add(&outer, V8_TOLD_POSITIONS, POSITIONS, inner_positions, sizeof(inner_positions));
	add(&outer, V8_TOLD_EXTRA, EXTRA, plain_safepoints[0], sizeof(plain_safepoints[0]));
	add(&outer, V8_TOLD_BYTECODES, BYTECODES, exits, sizeof(exits));
	add(&outer, V8_TOLD_TRANSLATIONS, TRANSLATIONS, translations, sizeof(translations));
	other_object = &inner.memory;
	outer.memory.other = find_other;
	cr_assert_eq(name_with(&opcodes_124, &outer, 77, &o), 0);
	cr_assert_eq(runtime_calls(&o, 0x5f, calls, 4), 2);
	cr_expect(calls[0].name.len == 5 && memcmp(calls[0].name.data, "inner", 5) == 0);
	cr_expect_eq(calls[0].line, 6, "its bytecode 2");
	cr_expect_eq(calls[1].line, 16, "bytecode 2");
	cr_assert_eq(runtime_calls(&o, 0x50, calls, 4), 1, "no call");
	cr_expect_eq(calls[0].line, 0);
	object_memory_done(&inner.memory);
	done(&outer, &o);
}

/* What is between has the place that a position or a call has last told. */
Test(v8, calls_have_the_lines_of_their_exits_and_other_code_those_of_its_positions)
{
	static const uint32_t ends[] = { 40, 60, 200 };
	static const uint64_t exits[] = { (uint64_t)-1 << 32, 0, 0xb4ull << 32,
					  2ull << 32,	      0, 0xb8ull << 32 };
	/* At 0x41 character 63, at 0x58 character 28, at 0x70 character 63. */
	static const uint8_t own[] = { 0x82, 0x01, 0x80, 0x02, 0x2e, 0x8b, 0x01, 0x30, 0x8c, 0x01 };
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_LAZY, 77, "inner", "/srv/hot.js");
	c.told[V8_TOLD_RANGE] = 28 | 100ull << 32;
	add_ends(&c, 5, ends, 3);
	add(&c, V8_TOLD_POSITIONS, POSITIONS, inner_positions, sizeof(inner_positions));
	add(&c, V8_TOLD_EXTRA, EXTRA, plain_safepoints[0], sizeof(plain_safepoints[0]));
	add(&c, V8_TOLD_BYTECODES, BYTECODES, exits, sizeof(exits));
	add(&c, V8_TOLD_OWN_POSITIONS, OWN, own, sizeof(own));
	cr_assert_eq(name(&c, 77, &o), 0);
	cr_expect_eq(line_at(&o, 0x3e), 5, "the function's entry");
	cr_expect_eq(line_at(&o, 0x50), 7, "character 63");
	cr_expect_eq(line_at(&o, 0x5e), 5, "character 28");
	cr_expect_eq(line_at(&o, 0x5f), 6, "the call at character 58");
	cr_expect_eq(line_at(&o, 0x60), 6, "as the call");
	cr_expect_eq(line_at(&o, 0x80), 7, "character 63");
	cr_expect_eq(line_at(&o, 0xae), 7, "a call without exit");
	done(&c, &o);
}

/* Of code with inlined functions. */
Test(v8, code_before_its_first_position_has_the_first_line)
{
	static const uint32_t ends[] = { 40, 60, 200 };
	static const uint8_t own[] = { 0x82, 0x01, 0x80, 0x02 };
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_LAZY, 77, "outer", "/srv/hot.js");
	c.told[V8_TOLD_RANGE] = 28 | 100ull << 32;
	c.told[V8_TOLD_INLINED_COUNT] = 1;
	add_ends(&c, 5, ends, 3);
	add(&c, V8_TOLD_OWN_POSITIONS, OWN, own, sizeof(own));
	cr_assert_eq(name(&c, 77, &o), 0);
	cr_expect_eq(line_at(&o, 0x3e), 5, "the function's entry");
	cr_expect_eq(line_at(&o, 0x50), 7, "character 63");
	done(&c, &o);
}

Test(v8, an_interpreted_function_has_the_line_of_each_bytecode)
{
	static const uint32_t ends[] = { 40, 60, 200 };
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_INTERPRETED, 77, "inner", "/srv/hot.js");
	c.told[V8_TOLD_RANGE] = 28 | 100ull << 32;
	add_ends(&c, 5, ends, 3);
	add(&c, V8_TOLD_POSITIONS, POSITIONS, inner_positions, sizeof(inner_positions));
	cr_assert_eq(name(&c, 77, &o), 0);
	cr_expect(is(&o.name, "inner"));
	cr_expect(is(&o.source, "/srv/hot.js"));
	cr_expect_eq(o.start_line, 5);
	cr_expect_eq(line_at(&o, 0), 6, "character 42");
	cr_expect_eq(line_at(&o, 2), 6, "character 58");
	cr_expect_eq(line_at(&o, 4), 7, "character 63");
	cr_expect_eq(line_at(&o, RUNTIME_POSITION_MASK), 5, "not yet in it");
	done(&c, &o);
}

Test(v8, lines_beyond_those_copied_are_unknown)
{
	static const uint32_t ends[] = { 40 };
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_INTERPRETED, 77, "inner", "/srv/hot.js");
	add_ends(&c, 5, ends, 1);
	c.told[V8_TOLD_ENDS_SIZE] = 64;
	add(&c, V8_TOLD_POSITIONS, POSITIONS, inner_positions, sizeof(inner_positions));
	cr_assert_eq(name(&c, 77, &o), 0);
	cr_expect_eq(o.start_line, 5);
	cr_expect_eq(line_at(&o, 1), 0);
	done(&c, &o);
}

Test(v8, a_script_without_lines_still_names_its_functions)
{
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_INTERPRETED, 77, "", "file:///srv/a%20b.mjs");
	add(&c, V8_TOLD_POSITIONS, POSITIONS, inner_positions, sizeof(inner_positions));
	cr_assert_eq(name(&c, 77, &o), 0);
	cr_expect(is(&o.name, "(anonymous)"));
	cr_expect(is(&o.source, "/srv/a b.mjs"));
	cr_expect_eq(line_at(&o, 1), 0);
	done(&c, &o);
}

Test(v8, wide_texts_become_utf8)
{
	static const uint8_t text[] = { 'f', 0, 0xe9, 0, 0x2c, 0x4e, 0x3d, 0xd8, 0x00, 0xde };
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_FUNCTION, 9, "x", "y");
	add(&c, V8_TOLD_NAME, NAME + 16, text, sizeof(text));
	c.told[V8_TOLD_SHAPES] = 1u << V8_SHAPE_NAME;
	cr_assert_eq(name(&c, 9, &o), 0);
	cr_expect(is(&o.name, "f\xc3\xa9\xe4\xb8\xac\xf0\x9f\x98\x80"));
	done(&c, &o);
}

Test(v8, a_name_is_put_together_of_its_parts)
{
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_FUNCTION, 9, "module", "y");
	add(&c, V8_TOLD_NAME + 2, NAME + 64, ".exports", 8);
	cr_assert_eq(name(&c, 9, &o), 0);
	cr_expect(is(&o.name, "module.exports"));
	done(&c, &o);
}

/* The walk describes the last strings, each in the place of an earlier one. */
Test(v8, a_name_of_many_parts_keeps_its_end)
{
	static const char *const parts[] = { ".", "render", "env.", "exports" };
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_FUNCTION, 9, "", "y");
	for (unsigned i = 0; i < 4; i++)
		add(&c, V8_TOLD_NAME + 2 * i, NAME + 64 * (i + 1), parts[i], strlen(parts[i]));
	c.told[V8_TOLD_SHAPES] = 2ull << V8_SHAPE_NAME_FIRST |
				 1ull << (V8_SHAPE_HEADLESS + V8_SHAPE_NAME + 2);
	cr_assert_eq(name(&c, 9, &o), 0);
	cr_expect(is(&o.name, "...env.exports.render"), "%.*s", (int)o.name.len, o.name.bytes);
	done(&c, &o);
}

Test(v8, another_object_is_not_taken_for_a_function)
{
	struct copy c = { 0 };
	struct runtime_object o = { 0 };
	struct runtime_build b = { .known = true, .config.runtime = RUNTIME_V8 };

	tell(&c, V8_FUNCTION, 10, "x", "y");
	object_memory_add(&c.memory, v8_key(9),
			  (struct span){ (const uint8_t *)c.told, sizeof(c.told) });
	cr_expect_eq(runtime_name(&b, v8_key(9), v8_check(9), &c.memory, &o), RUNTIME_GONE);
	cr_expect_eq(runtime_name(&b, v8_key(9), v8_check(8), &c.memory, &o), RUNTIME_GONE);
	done(&c, &o);
}

Test(v8, lines_are_counted_in_the_text_of_a_script_that_knows_none)
{
	static const char text[] = "(n) {\n let s = 0;\n}";
	struct copy c = { 0 };
	struct runtime_object o = { 0 };

	tell(&c, V8_INTERPRETED, 77, "inner", "/srv/hot.js");
	c.told[V8_TOLD_RANGE] = 28 | 48ull << 32;
	c.told[V8_TOLD_LINE] = 6;
	c.told[V8_TOLD_SHAPES] = 1u << V8_SHAPE_IS_TEXT;
	add(&c, V8_TOLD_ENDS, ENDS, text, sizeof(text) - 1);
	add(&c, V8_TOLD_POSITIONS, POSITIONS, inner_positions, sizeof(inner_positions));
	cr_assert_eq(name(&c, 77, &o), 0);
	cr_expect_eq(o.start_line, 7);
	cr_expect_eq(line_at(&o, 1), 8, "character 42");
	cr_expect_eq(line_at(&o, 2), 0, "character 58, which was not copied");
	done(&c, &o);
}

/* --- baseline code --- */

Test(v8, baseline_code_has_the_lines_of_its_bytecodes)
{
	/* An entry, and bytecodes of 1, 2, and 1 + 3 bytes; the last has a prefix. */
	static const uint8_t sizes[] = { 0x17, 0x02, 0x04, 0x81, 0x01 };
	static const uint8_t bytecodes[] = { 10, 11, 0, 0, 11, 0, 0 };
	struct v8_naming n = { .bytecodes = 12 };
	uint32_t end, bytecode;

	n.size[0][10] = n.size[1][10] = 1;
	n.size[0][11] = 2;
	n.size[1][11] = 3;

	struct v8_baseline b = { .naming = &n,
				 .sizes = { sizes, sizeof(sizes) },
				 .bytecodes = { bytecodes, sizeof(bytecodes) } };
	static const uint32_t expected[][2] = {
		{ 0x17, 0 }, { 0x19, 0 }, { 0x1d, 1 }, { 0x9e, 3 }
	};

	for (unsigned i = 0; i < 4; i++) {
		cr_assert(v8_baseline_next(&b, &end, &bytecode));
		cr_expect_eq(end, expected[i][0]);
		cr_expect_eq(bytecode, expected[i][1]);
	}
	cr_expect_not(v8_baseline_next(&b, &end, &bytecode));
}

/* --- optimized code --- */

#define CALLED 500 /* the identity of the inlined function */

static struct copy called;

static struct object_memory *find_called(void *ctx, uint64_t address, uint64_t check)
{
	const uint64_t key = v8_key(CALLED);

	(void)ctx;
	return address == key && check == v8_check(key) ? &called.memory : NULL;
}

static void add_signed(uint8_t *to, size_t *n, int64_t v)
{
	uint64_t u = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);

	for (; u >= 0x80; u >>= 7)
		to[(*n)++] = (uint8_t)(u | 0x80);
	to[(*n)++] = (uint8_t)u;
}

/* The object itself at character 100; from byte 10 on the call inlined at character 120, at its
 * character 30; from byte 20 on the object itself again. */
static void make_optimized(struct copy *c, bool known)
{
	static const uint32_t ends[] = { 110, 130, 150 }, called_ends[] = { 25, 35 };
	const uint64_t key = v8_key(CALLED);
	uint8_t table[64];
	struct {
		uint64_t raw;
		int32_t function;
		uint32_t unused;
	} calls[1] = { { (120 + 1) << 1, 0, 0 } };
	const int64_t outer = (100 + 1) << 1, inside = (30 + 1) << 1 | 1ll << 31;
	size_t n = 0;

	add_signed(table, &n, 1);
	add_signed(table, &n, outer);
	add_signed(table, &n, 10);
	add_signed(table, &n, inside - outer);
	add_signed(table, &n, 10);
	add_signed(table, &n, outer - inside);
	tell(c, V8_OPTIMIZED, 40, "outer", "/srv/outer.js");
	add_ends(c, 10, ends, 3);
	add(c, V8_TOLD_POSITIONS, POSITIONS, table, n);
	add(c, V8_TOLD_EXTRA, EXTRA, calls, sizeof(calls));
	c->told[V8_TOLD_INLINED_COUNT] = 1;
	c->told[V8_TOLD_INLINED] = key;
	c->memory.other = find_called;
	called = (struct copy){ 0 };
	tell(&called, V8_INLINED, key, "inner", "/srv/inner.js");
	add_ends(&called, 3, called_ends, 2);
	if (known)
		object_memory_add(
			&called.memory, key,
			(struct span){ (const uint8_t *)called.told, sizeof(called.told) });
}

Test(v8, optimized_code_tells_what_is_inlined_in_it)
{
	struct copy c = { 0 };
	struct runtime_object o = { 0 };
	struct runtime_call calls[4];

	make_optimized(&c, true);
	cr_assert_eq(name(&c, 40, &o), 0);
	cr_assert_eq(runtime_calls(&o, 5, calls, 4), 1);
	cr_expect_eq(calls[0].line, 10);
	cr_assert_eq(runtime_calls(&o, 15, calls, 4), 2);
	cr_expect(str_eq(calls[0].name, STR_LIT("inner")));
	cr_expect(str_eq(calls[0].source, STR_LIT("/srv/inner.js")));
	cr_expect_eq(calls[0].line, 4);
	cr_expect(str_eq(calls[1].name, STR_LIT("outer")));
	cr_expect_eq(calls[1].line, 11, "of the call");
	cr_expect_eq(runtime_calls(&o, 25, calls, 4), 1);
	object_memory_done(&called.memory);
	done(&c, &o);
}

Test(v8, an_inlined_function_that_is_not_known_is_left_out)
{
	struct copy c = { 0 };
	struct runtime_object o = { 0 };
	struct runtime_call calls[4];

	make_optimized(&c, false);
	cr_assert_eq(name(&c, 40, &o), 0);
	cr_assert_eq(runtime_calls(&o, 15, calls, 4), 1);
	cr_expect(str_eq(calls[0].name, STR_LIT("outer")));
	cr_expect_eq(calls[0].line, 11, "of the call");
	object_memory_done(&called.memory);
	done(&c, &o);
}

/* -1 stands for the code's own function. */
Test(v8, a_function_that_is_inlined_in_itself_is_shown_again)
{
	struct copy c = { 0 };
	struct runtime_object o = { 0 };
	struct runtime_call calls[4];
	struct {
		uint64_t raw;
		int32_t function;
		uint32_t unused;
	} itself[1] = { { (120 + 1) << 1, -1, 0 } };

	make_optimized(&c, true);
	add(&c, V8_TOLD_EXTRA, EXTRA + 4096, itself, sizeof(itself));
	cr_assert_eq(name(&c, 40, &o), 0);
	cr_assert_eq(runtime_calls(&o, 15, calls, 4), 2);
	cr_expect(str_eq(calls[0].name, STR_LIT("outer")));
	cr_expect(str_eq(calls[1].name, STR_LIT("outer")));
	cr_expect_eq(calls[1].line, 11, "of the call");
	object_memory_done(&called.memory);
	done(&c, &o);
}

/* The call that returns at 20 has an exit at 0x90, and another call has none. */
Test(v8, optimized_code_that_was_given_up_returns_behind_its_end)
{
	static const uint8_t safepoints[] = { 2, 0, 0, 0, 0x91, 0, 0, 0, 20, 1, 0x91, 28, 0, 0 };
	struct copy c = { 0 };
	struct runtime_object o = { 0 };
	struct runtime_call calls[4];

	make_optimized(&c, true);
	add(&c, V8_TOLD_BYTECODES, BYTECODES, safepoints, sizeof(safepoints));
	cr_assert_eq(name(&c, 40, &o), 0);
	cr_assert_eq(runtime_calls(&o, 0x8f, calls, 4), 2);
	cr_expect(str_eq(calls[0].name, STR_LIT("inner")));
	cr_expect_eq(calls[0].line, 4);
	cr_expect_eq(calls[1].line, 11, "of the call");
	cr_expect_eq(runtime_calls(&o, 0x8e, calls, 4), 1);
	cr_expect_eq(runtime_calls(&o, 0x90, calls, 4), 1);
	object_memory_done(&called.memory);
	done(&c, &o);
}

Test(v8, inlined_calls_in_circles_end)
{
	struct copy c = { 0 };
	struct runtime_object o = { 0 };
	struct runtime_call calls[4];
	struct {
		uint64_t raw;
		int32_t function;
		uint32_t unused;
	} circle[1] = { { (120 + 1) << 1 | 1ull << 31, 0, 0 } };

	make_optimized(&c, true);
	add(&c, V8_TOLD_EXTRA, EXTRA + 4096, circle, sizeof(circle));
	cr_assert_eq(name(&c, 40, &o), 0);
	cr_expect_eq(runtime_calls(&o, 15, calls, 4), 1);
	object_memory_done(&called.memory);
	done(&c, &o);
}

/* Names a function of WebAssembly with this number; name: NULL if it has none. */
static void name_wasm(uint32_t number, const char *function, struct runtime_object *ret)
{
	struct copy c = { 0 };

	c.told[V8_TOLD_IDENTITY] = 5;
	c.told[V8_TOLD_KIND] = V8_WASM;
	c.told[V8_TOLD_RANGE] = number;
	c.told[V8_TOLD_LINE] = V8_NO_LINE;
	if (function)
		add(&c, V8_TOLD_NAME, NAME, function, strlen(function));
	cr_assert_eq(name(&c, 5, ret), 0);
	object_memory_done(&c.memory);
}

Test(v8, function_of_wasm_has_its_name_or_its_number)
{
	static const struct {
		uint32_t number;
		const char *function, *shown;
	} cases[] = {
		{ 7,
		  "gr\xc3\xb6\xc3\x9f"
		  "e",
		  "gr\xc3\xb6\xc3\x9f"
		  "e" },
		{ 7, "a\n\xff", "a?\xef\xbf\xbd" },
		{ 7, NULL, "wasm-function[7]" },
		{ V8_NO_NUMBER, NULL, "wasm-function" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct runtime_object o = { 0 };

		name_wasm(cases[i].number, cases[i].function, &o);
		cr_expect(is(&o.name, cases[i].shown), "%s", cases[i].shown);
		cr_expect(is(&o.source, "[wasm]"));
		cr_expect_eq(o.start_line, 0);
		runtime_object_done(&o);
	}
}

Test(v8, regular_expressions_have_one_name)
{
	struct copy c = { .told = { [V8_TOLD_IDENTITY] = 6,
				    [V8_TOLD_KIND] = V8_REGEXP,
				    [V8_TOLD_RANGE] = V8_NO_NUMBER,
				    [V8_TOLD_LINE] = V8_NO_LINE } };
	struct runtime_object o = { 0 };

	cr_assert_eq(name(&c, 6, &o), 0);
	cr_expect(is(&o.name, "(regexp)"));
	cr_expect_eq(o.source.len, 0);
	done(&c, &o);
}
