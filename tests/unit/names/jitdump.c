/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include "common/names/jit/jitdump.h"

#define CODE 0x7f0000001000ull

/* A jitdump that is being written. */
struct dump {
	struct buf b;
};

static void u32(struct dump *d, uint32_t v)
{
	buf_append(&d->b, &v, 4);
}

static void u64(struct dump *d, uint64_t v)
{
	buf_append(&d->b, &v, 8);
}

static void header(struct dump *d, uint64_t flags)
{
	u32(d, 0x4a695444);
	u32(d, 1);
	u32(d, 40);
	u32(d, EM_X86_64);
	u32(d, 0);
	u32(d, 1);
	u64(d, 1);
	u64(d, flags);
}

static void load(struct dump *d, uint64_t time, uint64_t address, uint64_t size, const char *name)
{
	size_t len = strlen(name) + 1;

	u32(d, 0);
	u32(d, (uint32_t)(56 + len + size));
	u64(d, time);
	u32(d, 1);
	u32(d, 1);
	u64(d, address);
	u64(d, address);
	u64(d, size);
	u64(d, 1);
	buf_append(&d->b, name, len);
	for (uint64_t i = 0; i < size; i++)
		buf_append(&d->b, "\xcc", 1);
}

static void move(struct dump *d, uint64_t time, uint64_t from, uint64_t to, uint64_t size)
{
	u32(d, 1);
	u32(d, 64);
	u64(d, time);
	u32(d, 1);
	u32(d, 1);
	u64(d, to);
	u64(d, from);
	u64(d, to);
	u64(d, size);
	u64(d, 1);
}

struct line {
	uint64_t address;
	uint32_t line;
	const char *file;
};

static void lines(struct dump *d, uint64_t address, const struct line *l, unsigned count)
{
	size_t size = 32;

	for (unsigned i = 0; i < count; i++)
		size += 16 + strlen(l[i].file) + 1;
	u32(d, 2);
	u32(d, (uint32_t)size);
	u64(d, 1);
	u64(d, address);
	u64(d, count);
	for (unsigned i = 0; i < count; i++) {
		u64(d, l[i].address);
		u32(d, l[i].line);
		u32(d, 0);
		buf_append(&d->b, l[i].file, strlen(l[i].file) + 1);
	}
}

/* Feeds it in pieces, like a reader, and skips bytes that the parser does not need. */
static int feed(struct jitdump *j, struct dump *d, size_t piece)
{
	int r = 0;

	for (uint64_t offset = 0, skip; r == 0 && offset < d->b.len;) {
		size_t n = d->b.len - offset < piece ? d->b.len - offset : piece;

		r = jitdump_feed(j, (struct span){ d->b.data + offset, n }, &skip);
		offset += n + skip;
	}
	return r;
}

static struct codemap_hit at(struct jitdump *j, uint64_t address, uint64_t time)
{
	struct codemap_hit hit = { .name = STR_LIT("none") };

	(void)codemap_find(&j->code, address, time, &hit);
	return hit;
}
#define EXPECT_AT(address, time, want) \
	cr_expect(str_eq(at(&j, address, time).name, STR_LIT(want)), "%.*s", \
		  (int)at(&j, address, time).name.len, at(&j, address, time).name.data)

Test(jitdump, code_has_its_name_from_its_time_on)
{
	for (size_t piece = 1; piece < 2000; piece = piece * 3 + 1) {
		struct dump d = { 0 };
		struct jitdump j;

		header(&d, 0);
		load(&d, 100, CODE, 64, "first");
		load(&d, 200, CODE + 64, 64, "second");
		load(&d, 300, CODE, 32, "third");
		jitdump_init(&j, 1 << 20);
		cr_assert_eq(feed(&j, &d, piece), 0);
		EXPECT_AT(CODE, 150, "first");
		EXPECT_AT(CODE, 299, "first");
		EXPECT_AT(CODE, 300, "third");
		EXPECT_AT(CODE + 127, 500, "second");
		EXPECT_AT(CODE + 64, 10, "second");
		EXPECT_AT(CODE + 128, 500, "none");
		jitdump_done(&j);
		buf_done(&d.b);
	}
}

Test(jitdump, of_a_foreign_clock_the_last_name_holds)
{
	struct dump d = { 0 };
	struct jitdump j;

	header(&d, 1);
	load(&d, 1000000000, CODE, 64, "first");
	load(&d, 2000000000, CODE, 64, "second");
	jitdump_init(&j, 1 << 20);
	cr_assert_eq(feed(&j, &d, 4096), 0);
	EXPECT_AT(CODE, 5, "second");
	jitdump_done(&j);
	buf_done(&d.b);
}

Test(jitdump, moved_code_keeps_name_and_lines)
{
	static const struct line table[] = { { CODE, 7, "a.js" }, { CODE + 16, 9, "b.js" } };
	struct dump d = { 0 };
	struct jitdump j;

	header(&d, 0);
	lines(&d, CODE, table, 2);
	load(&d, 100, CODE, 64, "f");
	move(&d, 200, CODE, CODE + 0x1000, 64);
	load(&d, 250, CODE, 64, "g");
	move(&d, 300, CODE + 0x9000, CODE + 0xa000, 64);
	jitdump_init(&j, 1 << 20);
	cr_assert_eq(feed(&j, &d, 4096), 0);
	EXPECT_AT(CODE, 150, "f");
	EXPECT_AT(CODE, 300, "g");
	EXPECT_AT(CODE + 0x1000, 300, "f");
	cr_expect_eq(at(&j, CODE + 0x1000 + 20, 300).line, 9);
	cr_expect(str_eq(at(&j, CODE + 0x1000 + 20, 300).file, STR_LIT("b.js")));
	cr_expect_eq(at(&j, CODE, 300).line, 0, "the lines were the other's");
	cr_expect_eq(j.bad_records, 1);
	jitdump_done(&j);
	buf_done(&d.b);
}

Test(jitdump, lines_counted_from_an_elf_header_are_set_right)
{
	static const struct line table[] = { { CODE + 64, 7, "a.js" },
					     { CODE + 80, 9, "\xff" },
					     { CODE + 72, 8, "\xff" } };
	struct dump d = { 0 };
	struct jitdump j;

	header(&d, 0);
	lines(&d, CODE, table, 3);
	load(&d, 100, CODE, 64, "f");
	jitdump_init(&j, 1 << 20);
	cr_assert_eq(feed(&j, &d, 4096), 0);
	cr_expect_eq(at(&j, CODE, 150).line, 7);
	cr_expect_eq(at(&j, CODE + 15, 150).line, 7);
	cr_expect_eq(at(&j, CODE + 16, 150).line, 9);
	cr_expect(str_eq(at(&j, CODE + 16, 150).file, STR_LIT("a.js")));
	jitdump_done(&j);
	buf_done(&d.b);
}

Test(jitdump, a_table_of_lines_that_makes_no_sense_is_left_out)
{
	static const struct line table[] = { { CODE, 7, "a.js" }, { 5, 9, "b.js" } };
	struct dump d = { 0 };
	struct jitdump j;

	header(&d, 0);
	lines(&d, CODE, table, 2);
	load(&d, 100, CODE, 64, "f");
	jitdump_init(&j, 1 << 20);
	cr_assert_eq(feed(&j, &d, 4096), 0);
	EXPECT_AT(CODE, 150, "f");
	cr_expect_eq(at(&j, CODE, 150).line, 0);
	cr_expect_eq(j.bad_records, 1);
	jitdump_done(&j);
	buf_done(&d.b);
}

Test(jitdump, foreign_ones_are_refused_and_garbage_ends_it)
{
	static const struct {
		size_t at;
		uint32_t value;
		int verdict;
	} bad[] = {
		{ 0, 0x4454694a, JITDUMP_FOREIGN }, { 0, 0x464c457f, JITDUMP_MALFORMED },
		{ 4, 2, JITDUMP_FOREIGN },	    { 12, EM_AARCH64, JITDUMP_FOREIGN },
		{ 8, 39, JITDUMP_MALFORMED },	    { 8, 1u << 31, JITDUMP_MALFORMED },
		{ 44, 15, JITDUMP_MALFORMED },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dump d = { 0 };
		struct jitdump j;

		header(&d, 0);
		load(&d, 100, CODE, 64, "f");
		memcpy(d.b.data + bad[i].at, &bad[i].value, 4);
		jitdump_init(&j, 1 << 20);
		cr_expect_eq(feed(&j, &d, 4096), bad[i].verdict, "%zu", i);
		EXPECT_AT(CODE, 150, "none");
		jitdump_done(&j);
		buf_done(&d.b);
	}
}

Test(jitdump, unknown_and_giant_records_are_passed_over)
{
	struct dump d = { 0 };
	struct jitdump j;
	uint64_t skip;

	header(&d, 0);
	u32(&d, 77);
	u32(&d, 24);
	u64(&d, 1);
	u64(&d, 0);
	load(&d, 100, CODE, 64, "f");
	u32(&d, 2);
	u32(&d, 0xfffffff0);
	u64(&d, 1);
	jitdump_init(&j, 1 << 20);
	cr_assert_eq(jitdump_feed(&j, buf_span(&d.b), &skip), 0);
	cr_expect_eq(skip, 0xfffffff0u - 16);
	EXPECT_AT(CODE, 150, "f");
	jitdump_done(&j);
	buf_done(&d.b);
}
