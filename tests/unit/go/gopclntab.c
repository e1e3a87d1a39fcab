/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include "common/go/gopclntab.h"
#include "tests/unit/gotable.h"

struct bytes {
	const uint8_t *data;
	size_t len;
};

static int64_t read_bytes(void *ctx, uint64_t offset, void *into, size_t n)
{
	const struct bytes *b = ctx;

	if (offset >= b->len)
		return 0;
	n = n < b->len - offset ? n : (size_t)(b->len - offset);
	memcpy(into, b->data + offset, n);
	return (int64_t)n;
}

static int open_bytes(struct bytes *b, struct gopclntab **ret)
{
	struct gopclntab_reader reader = { .read = read_bytes, .ctx = b, .size = b->len };

	return gopclntab_open(&reader, ret);
}

static struct bytes whole;

static struct gopclntab *open_made(struct gotable *g)
{
	struct gopclntab *t = NULL;

	whole = (struct bytes){ .data = g->bytes, .len = sizeof(g->bytes) };
	cr_assert_eq(open_bytes(&whole, &t), 0, "kind %d", g->kind);
	return t;
}

static struct gotable *made_of(enum go_kind kind)
{
	static struct gotable g;

	g = (struct gotable){ .kind = kind };
	gotable_make(&g);
	return &g;
}

static struct gopclntab_func function_at(struct gopclntab *t, uint64_t address)
{
	struct gopclntab_func f;
	uint32_t index;

	cr_assert_eq(gopclntab_find(t, address, &index), 0, "%#lx", address);
	cr_assert_eq(gopclntab_func(t, index, &f), 0);
	return f;
}

static void expect_call(struct gopclntab *t, const struct gopclntab_func *f,
			const struct gopclntab_call *c, const char *name, const char *file,
			uint32_t line)
{
	char text[64];

	cr_assert_eq(gopclntab_name(t, c->name, text, sizeof(text)), 0);
	cr_assert_str_eq(text, name);
	cr_assert_eq(gopclntab_file(t, f, c->file, text, sizeof(text)), 0);
	cr_assert_str_eq(text, file);
	cr_assert_eq(c->line, line);
}

/* Checks everything that tests/unit/gotable.h writes. */
static void expect_made(struct gopclntab *t, enum go_kind kind)
{
	static const enum gopclntab_format formats[] = { GOPCLNTAB_1_2,	 GOPCLNTAB_1_2,
							 GOPCLNTAB_1_2,	 GOPCLNTAB_1_2,
							 GOPCLNTAB_1_16, GOPCLNTAB_1_18,
							 GOPCLNTAB_1_20, GOPCLNTAB_1_20 };
	struct gopclntab_call calls[8];
	struct gopclntab_func f;
	uint32_t found;
	char text[64];

	cr_assert_eq(gopclntab_format(t), formats[kind]);
	cr_assert_eq(gopclntab_count(t), GO_FUNCTIONS);
	cr_assert_eq(gopclntab_find(t, GO_TEXT - 1, &found), GOPCLNTAB_NONE);
	cr_assert_eq(gopclntab_find(t, GO_TEXT + 0xbf, &found), 0);
	cr_assert_eq(gopclntab_find(t, GO_TEXT + 0xc0, &found), GOPCLNTAB_NONE);

	f = function_at(t, GO_TEXT + 0x3f);
	cr_assert_eq(f.entry, GO_TEXT);
	cr_assert_eq(f.end, GO_TEXT + 0x40);
	cr_assert_eq(f.args, 8);
	cr_assert_eq(gopclntab_calls(t, &f, GO_TEXT, calls, 8), 1);
	expect_call(t, &f, &calls[0], "main.main", "/src/a.go", 10);
	cr_assert_eq(calls[0].start_line, kind >= GO_1_20 ? 9u : 0u);
	cr_assert_eq(gopclntab_calls(t, &f, GO_TEXT + 0x20, calls, 8), 1);
	expect_call(t, &f, &calls[0], "main.main", "/src/a.go", 12);

	f = function_at(t, GO_TEXT + 0x50);
	if (kind == GO_1_4) {
		cr_assert_eq(gopclntab_calls(t, &f, GO_TEXT + 0x50, calls, 8), 1);
		expect_call(t, &f, &calls[0], "main.work[go.shape.int]", "/src/b.go", 5);
	} else {
		cr_assert_eq(gopclntab_calls(t, &f, GO_TEXT + 0x50, calls, 8), 3, "kind %d", kind);
		expect_call(t, &f, &calls[0], "main.inner", "/src/b.go", 5);
		expect_call(t, &f, &calls[1], "main.middle",
			    kind < GO_1_20 ? "/src/b.go" : "/src/a.go", 7);
		expect_call(t, &f, &calls[2], "main.work[go.shape.int]", "/src/a.go", 22);
		cr_assert_eq(calls[0].start_line, kind >= GO_1_20 ? 4u : 0u);
		cr_assert_eq(calls[1].start_line, kind >= GO_1_20 ? 6u : 0u);
		/* With too little room, the calls near the root are kept. */
		cr_assert_eq(gopclntab_calls(t, &f, GO_TEXT + 0x50, calls, 2), 2);
		expect_call(t, &f, &calls[1], "main.work[go.shape.int]", "/src/a.go", 22);
		cr_assert_eq(gopclntab_name(t, calls[0].name, text, sizeof(text)), 0);
		cr_assert_str_eq(text, "main.middle");
	}
	cr_assert_eq(gopclntab_calls(t, &f, GO_TEXT + 0x70, calls, 8), 1);
	expect_call(t, &f, &calls[0], "main.work[go.shape.int]", "/src/a.go", 20);

	f = function_at(t, GO_TEXT + 0x80);
	cr_assert_eq(f.pcln, 0u);
	f = function_at(t, GO_TEXT + 0xbf);
	cr_assert_eq(f.args, INT32_MIN);
	cr_assert_eq(f.id, kind >= GO_1_12 ? 8 : 0);
	cr_assert_eq(f.flags, kind >= GO_1_12 ? GOPCLNTAB_TOP_FRAME : 0);
}

Test(gopclntab, every_format_says_the_same)
{
	for (int kind = 0; kind < GO_KINDS; kind++) {
		struct gopclntab *t = open_made(made_of((enum go_kind)kind));

		expect_made(t, (enum go_kind)kind);
		gopclntab_free(t);
	}
}

Test(gopclntab, pointers_are_taken_from_the_relocations)
{
	for (int kind = 0; kind < GO_KINDS; kind++) {
		struct gotable *g = made_of((enum go_kind)kind);
		struct gopclntab *t;

		g->relocated = true;
		gotable_make(g);
		cr_assert(g->relocations > 2);
		t = open_made(g);
		expect_made(t, (enum go_kind)kind);
		gopclntab_free(t);
	}
}

Test(gopclntab, without_section_headers_it_is_found)
{
	for (int kind = 0; kind < GO_KINDS; kind++) {
		struct gotable *g = made_of((enum go_kind)kind);
		struct gopclntab *t;

		g->no_sections = true;
		g->relocated = kind & 1;
		gotable_make(g);
		t = open_made(g);
		expect_made(t, (enum go_kind)kind);
		gopclntab_free(t);
	}
}

Test(gopclntab, in_a_section_of_another_name_it_is_found)
{
	struct gotable *g = made_of(GO_1_26);
	struct gopclntab *t;

	g->section = ".data.rel.ro";
	gotable_make(g);
	t = open_made(g);
	expect_made(t, GO_1_26);
	gopclntab_free(t);
}

Test(gopclntab, a_false_header_is_skipped)
{
	struct gotable *g = made_of(GO_1_20);
	struct gopclntab *t;

	g->no_sections = true;
	gotable_make(g);
	memcpy(g->bytes + 0xe00, g->bytes + GO_TABLE, 128);
	t = open_made(g);
	expect_made(t, GO_1_20);
	gopclntab_free(t);
}

Test(gopclntab, values_are_ranges_without_gaps)
{
	static const int32_t want[][3] = { { 0, 4, 0 }, { 4, 0x1f, 24 }, { 0x1f, 0x20, 0 } };
	struct gopclntab *t = open_made(made_of(GO_1_18));
	struct gopclntab_func f = function_at(t, GO_TEXT + 0xa0);
	struct gopclntab_values v;
	uint64_t start, end;
	int32_t value;

	gopclntab_values(t, &f, f.pcsp, &v);
	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(gopclntab_next(&v, &start, &end, &value), 0);
		cr_assert_eq(start - f.entry, (uint64_t)want[i][0]);
		cr_assert_eq(end - f.entry, (uint64_t)want[i][1]);
		cr_assert_eq(value, want[i][2]);
	}
	cr_assert_eq(gopclntab_next(&v, &start, &end, &value), GOPCLNTAB_NONE);
	gopclntab_values(t, &f, 0, &v);
	cr_assert_eq(gopclntab_next(&v, &start, &end, &value), GOPCLNTAB_NONE);
	gopclntab_free(t);
}

Test(gopclntab, a_table_that_does_not_advance_is_malformed)
{
	struct gotable *g = made_of(GO_1_20);
	struct gopclntab *t;
	struct gopclntab_func f;
	struct gopclntab_values v;
	uint64_t start, end;
	int32_t value;

	g->bytes[g->tables[TABLE_SP] + 3] = 0; /* the second step */
	t = open_made(g);
	f = function_at(t, GO_TEXT);
	gopclntab_values(t, &f, f.pcsp, &v);
	cr_assert_eq(gopclntab_next(&v, &start, &end, &value), 0);
	cr_assert_eq(gopclntab_next(&v, &start, &end, &value), GOPCLNTAB_MALFORMED);
	cr_assert_eq(gopclntab_next(&v, &start, &end, &value), GOPCLNTAB_NONE);
	gopclntab_free(t);
}

Test(gopclntab, a_function_outside_the_code_costs_itself)
{
	struct gotable *g = made_of(GO_1_13);
	struct gopclntab *t;
	struct gopclntab_func f;
	uint64_t far = 0x500000;

	memcpy(g->bytes + g->functab + 2 * 16, &far, 8);
	t = open_made(g);
	cr_assert_eq(gopclntab_func(t, 0, &f), 0);
	cr_assert_eq(gopclntab_func(t, 1, &f), GOPCLNTAB_MALFORMED);
	cr_assert_eq(gopclntab_func(t, 2, &f), GOPCLNTAB_MALFORMED);
	cr_assert_eq(gopclntab_func(t, 3, &f), 0);
	cr_assert_eq(gopclntab_func(t, 4, &f), GOPCLNTAB_MALFORMED);
	gopclntab_free(t);
}

Test(gopclntab, addresses_beside_it_have_no_function)
{
	struct gopclntab *t = open_made(made_of(GO_1_16));
	uint32_t index;

	cr_assert_eq(gopclntab_find(t, GO_TEXT - 1, &index), GOPCLNTAB_NONE);
	cr_assert_eq(gopclntab_find(t, GO_TEXT + 0xc0, &index), GOPCLNTAB_NONE);
	cr_assert_eq(gopclntab_find(t, 0, &index), GOPCLNTAB_NONE);
	cr_assert_eq(gopclntab_find(t, UINT64_MAX, &index), GOPCLNTAB_NONE);
	gopclntab_free(t);
}

/* A hostile file may claim this: inner is called from within inner. */
Test(gopclntab, calls_that_are_inlined_into_themselves_end)
{
	struct gopclntab_call calls[64];
	struct gopclntab_func f;
	struct gopclntab *t;
	struct gotable *g;
	uint32_t pc = 0x14;
	int count;

	g = made_of(GO_1_20);
	memcpy(g->bytes + GO_TREE + 16 + 8, &pc, 4);
	t = open_made(g);
	f = function_at(t, GO_TEXT + 0x50);
	count = gopclntab_calls(t, &f, GO_TEXT + 0x50, calls, 64);
	cr_assert_eq(count, 64);
	cr_assert_eq(calls[63].name, f.name);
	gopclntab_free(t);

	g = made_of(GO_1_13);
	g->bytes[GO_TREE] = 1; /* middle's parent is inner */
	g->bytes[GO_TREE + 1] = 0;
	t = open_made(g);
	f = function_at(t, GO_TEXT + 0x50);
	count = gopclntab_calls(t, &f, GO_TEXT + 0x50, calls, 64);
	cr_assert(count >= 1 && count <= 64);
	cr_assert_eq(calls[count - 1].name, f.name);
	gopclntab_free(t);
}

Test(gopclntab, names_are_cut_to_the_room_there_is)
{
	struct gopclntab *t = open_made(made_of(GO_1_20));
	struct gopclntab_func f = function_at(t, GO_TEXT);
	char text[6];

	cr_assert_eq(gopclntab_name(t, f.name, text, sizeof(text)), 0);
	cr_assert_str_eq(text, "main.");
	cr_assert_eq(gopclntab_name(t, 0x10000, text, sizeof(text)), GOPCLNTAB_MALFORMED);
	cr_assert_eq(gopclntab_file(t, &f, 0, text, sizeof(text)), GOPCLNTAB_NONE);
	cr_assert_eq(gopclntab_file(t, &f, -1, text, sizeof(text)), GOPCLNTAB_NONE);
	cr_assert_eq(gopclntab_file(t, &f, 1 << 20, text, sizeof(text)), GOPCLNTAB_MALFORMED);
	gopclntab_free(t);
}

Test(gopclntab, other_files_have_none)
{
	struct gotable *g = made_of(GO_1_20);
	struct bytes b = { .data = g->bytes, .len = sizeof(g->bytes) };
	struct gopclntab *t;

	memset(g->bytes + GO_TABLE, 0, 8);
	cr_assert_eq(open_bytes(&b, &t), GOPCLNTAB_MALFORMED); /* a section of its name */
	g->section = ".rodata";
	gotable_make(g);
	memset(g->bytes + GO_TABLE, 0, 8);
	cr_assert_eq(open_bytes(&b, &t), GOPCLNTAB_NONE);
	g->bytes[EI_CLASS] = ELFCLASS32;
	cr_assert_eq(open_bytes(&b, &t), GOPCLNTAB_UNSUPPORTED);
	g->bytes[0] = 0;
	cr_assert_eq(open_bytes(&b, &t), GOPCLNTAB_NONE);
	b.len = 0;
	cr_assert_eq(open_bytes(&b, &t), GOPCLNTAB_NONE);
}

static int64_t read_nothing(void *ctx, uint64_t offset, void *into, size_t n)
{
	(void)ctx, (void)offset, (void)into, (void)n;
	return -EIO;
}

Test(gopclntab, errors_of_reading_are_handed_up)
{
	struct gopclntab_reader reader = { .read = read_nothing, .size = GO_SIZE };
	struct gopclntab *t;

	cr_assert_eq(gopclntab_open(&reader, &t), -EIO);
}

/* At any length, nothing is read past the end (a sanitizer would notice). */
Test(gopclntab, files_that_are_cut_short_do_no_harm)
{
	for (int kind = 0; kind < GO_KINDS; kind++) {
		struct gotable *g = made_of((enum go_kind)kind);
		unsigned opened = 0;

		g->no_sections = true;
		g->relocated = !(kind & 1);
		gotable_make(g);
		for (size_t len = 0; len <= sizeof(g->bytes); len += 61) {
			struct bytes b = { .data = g->bytes, .len = len };
			struct gopclntab_call calls[4];
			struct gopclntab_func f;
			struct gopclntab *t;

			if (open_bytes(&b, &t) != 0)
				continue;
			opened++;
			for (uint32_t i = 0; i < gopclntab_count(t); i++)
				if (gopclntab_func(t, i, &f) == 0)
					cr_assert(gopclntab_calls(t, &f, f.entry, calls, 4) >= 1);
			gopclntab_free(t);
		}
		cr_assert(opened > 0);
	}
}
