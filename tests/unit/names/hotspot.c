/* SPDX-License-Identifier: Apache-2.0 */
/* Methods as they are laid out in a JVM's memory, made by the tests. */
#include <criterion/criterion.h>
#include <string.h>
#include "common/names/runtime/hotspot/hotspot.h"

extern const struct runtime_ops hotspot_runtime;

#define METHOD 0x100000u
#define CONST 0x200000u
#define POOL 0x300000u
#define CLASS 0x400000u
#define SYMBOLS 0x500000u /* and 0x1000 for each */
#define CODE 20u	  /* bytes of bytecode */

static const struct hotspot_naming naming = { .major = 17,
					      .method_const = 8,
					      .method_bytes = 16,
					      .const_bytes = 48,
					      .const_pool = 8,
					      .const_size = 24,
					      .const_flags = 28,
					      .lines = 1,
					      .const_code_size = 32,
					      .const_name = 34,
					      .const_signature = 36,
					      .pool_bytes = 72,
					      .pool_holder = 24,
					      .source = 54,
					      .klass_name = 24,
					      .symbol_length = 4,
					      .symbol_text = 6 };

/* The memory of a process: parts with their addresses. */
struct part {
	uint64_t at;
	uint8_t bytes[1024];
};

struct process {
	struct part part[12];
	unsigned parts;
	uint64_t wanted[64]; /* addresses that were read */
	unsigned wants;
};

static uint8_t *add(struct process *p, uint64_t at)
{
	p->part[p->parts].at = at;
	return p->part[p->parts++].bytes;
}

static void put(uint8_t *to, uint64_t v, size_t bytes)
{
	memcpy(to, &v, bytes);
}

static uint64_t add_symbol(struct process *p, unsigned i, const char *text)
{
	const uint64_t at = SYMBOLS + i * 0x1000;
	uint8_t *b = add(p, at);

	put(b + 4, strlen(text), 2);
	memcpy(b + 6, text, strlen(text));
	return at;
}

static struct process *make(const char *class, const char *method, const char *signature,
			    const char *source, struct span lines)
{
	struct process *p = calloc(1, sizeof(*p));
	uint8_t *b = add(p, METHOD);

	put(b + 8, CONST, 8);
	b = add(p, CONST);
	put(b + 8, POOL, 8);
	put(b + 24, (48 + CODE + lines.len + 7) / 8, 4);
	put(b + 28, lines.len ? 1 : 0, 2);
	put(b + 32, CODE, 2);
	put(b + 34, 3, 2);
	put(b + 36, 4, 2);
	if (lines.len)
		memcpy(b + 48 + CODE, lines.data, lines.len);
	b = add(p, POOL);
	put(b + 24, CLASS, 8);
	put(b + 54, source ? 5 : 0, 2);
	put(b + 72 + 3 * 8, add_symbol(p, 0, method), 8);
	put(b + 72 + 4 * 8, add_symbol(p, 1, signature), 8);
	if (source)
		put(b + 72 + 5 * 8, add_symbol(p, 2, source), 8);
	b = add(p, CLASS);
	put(b + 24, add_symbol(p, 3, class), 8);
	return p;
}

static struct span read_part(struct process *p, uint64_t at, uint32_t wanted)
{
	cr_assert_lt(p->wants, 64);
	p->wanted[p->wants++] = at;
	for (unsigned i = 0; i < p->parts; i++) {
		const struct part *k = &p->part[i];

		/* The bytes before an object are also read. */
		if (at + 8 == k->at && wanted > 8) {
			static uint8_t more[1032];

			memset(more, 0, 8);
			memcpy(more + 8, k->bytes, sizeof(k->bytes));
			return (struct span){ .data = more, .len = wanted };
		}
		if (at >= k->at && at - k->at < sizeof(k->bytes))
			return (struct span){ .data = k->bytes + (at - k->at),
					      .len = sizeof(k->bytes) - (at - k->at) };
	}
	return (struct span){ 0 };
}

static uint64_t check_of(const struct process *p)
{
	uint32_t size;

	memcpy(&size, p->part[1].bytes + 24, 4);
	return hotspot_check(CONST, POOL, size | (uint64_t)CODE << 32, 3 | 4 << 16);
}

static int name(struct process *p, uint64_t check, struct runtime_object *ret)
{
	struct runtime_build b = { .config.runtime = RUNTIME_HOTSPOT, .known = true };
	struct object_memory m = { 0 };
	int r = RUNTIME_WANTS;

	memcpy(b.naming, &naming, sizeof(naming));
	cr_assert(hotspot_runtime.is_sane(&b));
	for (int i = 0; i < RUNTIME_ROUNDS && r == RUNTIME_WANTS; i++) {
		r = runtime_name(&b, METHOD, check, &m, ret);
		for (unsigned k = 0; object_memory_next(&m, &k); k++)
			cr_assert_eq(object_memory_put(
					     &m, k,
					     read_part(p, m.pieces[k].address, m.pieces[k].wanted)),
				     0);
	}
	object_memory_done(&m);
	return r;
}

static bool is(const struct runtime_text *t, const char *s)
{
	return t->len == strlen(s) && memcmp(t->bytes, s, t->len) == 0;
}

static uint64_t line_of(const struct runtime_object *o, uint32_t position)
{
	return runtime_line((const struct runtime_line *)o->lines.data,
			    o->lines.len / sizeof(struct runtime_line), position);
}

Test(hotspot, methods_are_named_with_class_and_parameters)
{
	/* bytecode 0: line 7; 3: line 9; from 10 on: line 200, by the long form */
	const uint8_t table[] = { 7, 3 << 3 | 2, 0xff, 14, 0xfe, 2, 0 };
	struct process *p = make("java/util/Map$Entry", "put", "(I[Ljava/lang/String;[[J)V",
				 "Map.java", (struct span){ .data = table, .len = sizeof(table) });
	struct runtime_object o = { 0 };

	cr_assert_eq(name(p, check_of(p), &o), 0);
	cr_expect(is(&o.name, "java.util.Map$Entry.put(int, java.lang.String[], long[][])"));
	cr_expect(is(&o.system_name, "java/util/Map$Entry.put(I[Ljava/lang/String;[[J)V"));
	cr_expect(is(&o.source, "Map.java"));
	cr_expect_eq(o.start_line, 7);
	cr_expect_eq(line_of(&o, 0), 7);
	cr_expect_eq(line_of(&o, 2), 7);
	cr_expect_eq(line_of(&o, 3), 9);
	cr_expect_eq(line_of(&o, 9), 9);
	/* 0xfe, 2: 254 + 2 * 64 is 382, which is +191 */
	cr_expect_eq(line_of(&o, 10), 200);
	cr_expect_eq(line_of(&o, CODE - 1), 200);
	runtime_object_done(&o);
	free(p);
}

Test(hotspot, methods_without_source_and_lines_have_their_name)
{
	struct process *p = make("A$$Lambda$14+0x0000000800c03000", "run", "()V", NULL,
				 (struct span){ 0 });
	struct runtime_object o = { 0 };

	cr_assert_eq(name(p, check_of(p), &o), 0);
	cr_expect(is(&o.name, "A$$Lambda$14.run()"));
	cr_expect_eq(o.source.len, 0);
	cr_expect_eq(line_of(&o, 0), 0);
	runtime_object_done(&o);
	free(p);
}

Test(hotspot, another_method_at_the_address_is_gone)
{
	struct process *p = make("A", "run", "()V", NULL, (struct span){ 0 });
	struct runtime_object o = { 0 };

	cr_expect_eq(name(p, check_of(p) ^ 1, &o), RUNTIME_GONE);
	p->part[0].at = 8; /* unmapped */
	cr_expect_eq(name(p, check_of(p), &o), RUNTIME_GONE);
	runtime_object_done(&o);
	free(p);
}

/* Naming asks only for memory that the steps reach. */
Test(hotspot, only_places_of_the_steps_are_read)
{
	struct process *p = make("A", "run", "()V", "A.java", (struct span){ 0 });
	const uint64_t places[] = { METHOD,
				    METHOD - 8,
				    CONST,
				    POOL,
				    CLASS,
				    POOL + 72 + 3 * 8,
				    POOL + 72 + 4 * 8,
				    POOL + 72 + 5 * 8 };
	struct runtime_object o = { 0 };

	cr_assert_eq(name(p, check_of(p), &o), 0);
	for (unsigned i = 0; i < p->wants; i++) {
		bool found = (p->wanted[i] & 0xfff) == 0 && p->wanted[i] >= SYMBOLS;

		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++)
			found |= p->wanted[i] == places[k];
		cr_expect(found, "0x%lx", (unsigned long)p->wanted[i]);
	}
	runtime_object_done(&o);
	free(p);
}

Test(hotspot, stubs_are_named_by_their_text)
{
	struct process *p = make("A", "run", "()V", NULL, (struct span){ 0 });
	struct runtime_object o = { 0 };
	UW_U64 text[2] = { 0 };

	strcpy((char *)p->part[0].bytes, "vtable chunks");
	memcpy(text, p->part[0].bytes, sizeof(text));
	cr_assert_eq(name(p, hotspot_text_check(text), &o), 0);
	cr_expect(is(&o.name, "[vtable chunks]"));
	runtime_object_done(&o);
	free(p);
}

static void expect_class(const char *from, const char *to)
{
	struct runtime_text t = { 0 };

	hotspot_class_text((struct str){ .data = from, .len = (uint32_t)strlen(from) }, &t);
	cr_expect(is(&t, to), "%s: %.*s", from, (int)t.len, t.bytes);
}

Test(hotspot, class_names_have_dots_and_no_addresses)
{
	expect_class("java/lang/Object", "java.lang.Object");
	expect_class("a/B$$Lambda+0x00007f3c14000a00", "a.B$$Lambda");
	expect_class("a/B$$Lambda$1/1234567", "a.B$$Lambda$1");
	expect_class("a/12", "a.12");
	expect_class("a/Fade", "a.Fade");
	expect_class("", "");
	/* e with an acute accent; a pair of surrogates; a lone one; NUL as two bytes */
	expect_class("\xc3\xa9", "\xc3\xa9");
	expect_class("\xed\xa0\xbd\xed\xb8\x80", "\xf0\x9f\x98\x80");
	expect_class("\xed\xa0\xbd", "?");
	expect_class("\xc0\x80", "?");
	expect_class("\xff\n", "??");
}

static void expect_parameters(const char *from, const char *to)
{
	struct runtime_text t = { 0 };

	hotspot_parameters((struct str){ .data = from, .len = (uint32_t)strlen(from) }, &t);
	cr_expect(is(&t, to), "%s: %.*s", from, (int)t.len, t.bytes);
}

Test(hotspot, descriptors_become_parameters)
{
	expect_parameters("()V", "()");
	expect_parameters("(BCDFIJSZ)V", "(byte, char, double, float, int, long, short, boolean)");
	expect_parameters("([[La/B;)La/C;", "(a.B[][])");
	expect_parameters("(La/B", "()");
	expect_parameters("(X", "()");
	expect_parameters("", "");
}

Test(hotspot, compressed_numbers_without_zeros_are_read_since_20)
{
	/* +5 and +3, each 1 more in every byte */
	const uint8_t table[] = { 0xff, 11, 7, 0 };
	struct runtime_object o = { 0 };

	cr_expect_eq(
		hotspot_lines((struct span){ .data = table, .len = sizeof(table) }, false, 10, &o),
		0);
	cr_expect_eq(o.start_line, 3);
	cr_expect_eq(line_of(&o, 7), 3);
	cr_expect_eq(line_of(&o, 4), 0, "before the first entry");
	runtime_object_done(&o);
}

Test(hotspot, wrong_line_tables_end)
{
	const uint8_t endless[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const uint8_t back[] = { 3 << 3 | 1, 0xff, 9, 0, 0 };
	struct runtime_object o = { 0 };

	cr_expect_eq(hotspot_lines((struct span){ .data = endless, .len = sizeof(endless) }, true,
				   10, &o),
		     0);
	cr_expect_eq(
		hotspot_lines((struct span){ .data = back, .len = sizeof(back) }, true, 10, &o), 0);
	runtime_object_done(&o);
}
