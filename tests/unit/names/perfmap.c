/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps, and the map of code behind them and jitdumps. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/base/system/clock.h"
#include "common/names/jit/perfmap.h"

#define MIB (1u << 20)

static struct span text_of(const char *s)
{
	return (struct span){ .data = (const uint8_t *)s, .len = strlen(s) };
}

/* The name at an address, or NULL. */
static const char *at(struct codemap *m, uint64_t address, uint64_t time_ns)
{
	static char name[CODEMAP_NAME + 1];
	struct codemap_hit hit;

	if (codemap_find(m, address, time_ns, &hit) != 0)
		return "none";
	memcpy(name, hit.name.data, hit.name.len);
	name[hit.name.len] = '\0';
	return name;
}

static struct perfmap of(const char *text)
{
	struct perfmap p;

	perfmap_init(&p, 8 * MIB);
	cr_assert_eq(perfmap_feed(&p, text_of(text)), 0);
	return p;
}

Test(perfmap, lines_of_known_runtimes_are_taken)
{
	struct perfmap p = of("7f3280005b80 180 JS:*fib /tmp/burn.js:1:13\n"
			      "0x00007f0000001000 0x20 int Burn.fib(int)\n"
			      "7f0000002000   10\tlua trace 1\r\n"
			      "0X7f0000003000 b py::f:/a b.py\n");

	cr_expect_str_eq(at(&p.code, 0x7f3280005b80, 1), "JS:*fib /tmp/burn.js:1:13");
	cr_expect_str_eq(at(&p.code, 0x7f3280005cff, 1), "JS:*fib /tmp/burn.js:1:13");
	cr_expect_str_eq(at(&p.code, 0x7f3280005d00, 1), "none");
	cr_expect_str_eq(at(&p.code, 0x7f3280005b7f, 1), "none");
	cr_expect_str_eq(at(&p.code, 0x7f000000101f, 1), "int Burn.fib(int)");
	cr_expect_str_eq(at(&p.code, 0x7f0000002000, 1), "lua trace 1");
	cr_expect_str_eq(at(&p.code, 0x7f000000300a, 1), "py::f:/a b.py");
	cr_expect_eq(p.bad_lines, 0);
	perfmap_done(&p);
}

Test(perfmap, bad_lines_are_counted_and_cost_only_themselves)
{
	struct perfmap p = of("\n"
			      "1000 10\n"		      /* no name */
			      "1000 0 empty\n"		      /* no size */
			      "1000 ffffffffffffffff giant\n" /* no JIT's */
			      "fffffffffffffff8 10 wraps\n"   /* past the end */
			      "11112222333344445 10 long\n"   /* 17 digits */
			      "-1000 10 sign\n"		      /* no digit */
			      "root:$6$hash:19000:0:99999:7:::\n"
			      "1000 0x 0x\n"
			      "2000 10 good\n");

	cr_expect_str_eq(at(&p.code, 0x2000, 1), "good");
	cr_expect_str_eq(at(&p.code, 0x1000, 1), "none");
	cr_expect_eq(p.bad_lines, 8);
	perfmap_done(&p);
}

Test(perfmap, a_line_in_pieces_is_one_line)
{
	const char *text = "1000 10 whole name\n2000 10 last";
	struct perfmap p = of("");

	for (const char *c = text; *c; c++)
		cr_assert_eq(perfmap_feed(&p, (struct span){ (const uint8_t *)c, 1 }), 0);
	cr_expect_str_eq(at(&p.code, 0x1000, 1), "whole name");
	cr_expect_str_eq(at(&p.code, 0x2000, 1), "none", "its line feed may still come");
	cr_assert_eq(perfmap_flush(&p), 0);
	cr_expect_str_eq(at(&p.code, 0x2000, 1), "last");
	cr_assert_eq(perfmap_feed(&p, text_of(" one\n")), 0);
	cr_expect_str_eq(at(&p.code, 0x2000, 1), "last one");
	perfmap_done(&p);
}

Test(perfmap, names_are_bounded_and_end_at_a_nul)
{
	struct perfmap p = of("");
	char *line = malloc(2 * MIB);

	cr_assert_eq(perfmap_feed(&p, (struct span){ (const uint8_t *)"1000 10 a\0b\n", 12 }), 0);
	cr_expect_str_eq(at(&p.code, 0x1000, 1), "a");
	memset(line, 'x', 2 * MIB);
	memcpy(line, "2000 10 ", 8);
	memcpy(line + 2 * MIB - 13, "\n3000 10 next\n", 13);
	line[2 * MIB - 1] = '\n';
	cr_assert_eq(perfmap_feed(&p, (struct span){ (uint8_t *)line, 2 * MIB }), 0);
	cr_expect_eq(strlen(at(&p.code, 0x2000, 1)), CODEMAP_NAME);
	cr_expect_str_eq(at(&p.code, 0x3000, 1), "nex");
	free(line);
	perfmap_done(&p);
}

Test(perfmap, later_lines_hold_over_earlier_ones)
{
	struct perfmap p = of("1000 100 old\n2000 100 other\n1040 20 inner\n");

	cr_expect_str_eq(at(&p.code, 0x1000, 1), "old");
	cr_expect_str_eq(at(&p.code, 0x1050, 1), "inner");
	cr_expect_str_eq(at(&p.code, 0x1060, 1), "old");
	cr_assert_eq(perfmap_feed(&p, text_of("1000 20 new\n")), 0);
	cr_expect_str_eq(at(&p.code, 0x1000, 1), "new");
	cr_expect_str_eq(at(&p.code, 0x1030, 1), "none", "what began there is gone");
	cr_expect_str_eq(at(&p.code, 0x1050, 1), "inner");
	perfmap_done(&p);
}

/* --- the map, compared with a simple model --- */

struct piece {
	uint64_t start, size, time_ns;
};

static unsigned seed = 1;
static unsigned any(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % below;
}

static int plain(const struct piece *p, unsigned n, uint64_t address, uint64_t time_ns)
{
	int best = -1;

	for (unsigned i = 0; i < n; i++) {
		bool was = p[i].time_ns <= time_ns;
		bool best_was = best >= 0 && p[best].time_ns <= time_ns;

		if (address < p[i].start || address - p[i].start >= p[i].size)
			continue;
		if (best < 0 || was || (!best_was && p[i].time_ns < p[best].time_ns))
			best = was || !best_was ? (int)i : best;
	}
	return best;
}

Test(codemap, finds_what_was_there_at_the_time)
{
	static struct piece pieces[3000];
	struct codemap m;
	char name[16], want[16];

	codemap_init(&m, 8 * MIB);
	for (unsigned i = 0; i < 3000; i++) {
		pieces[i] = (struct piece){ .start = 0x1000 + any(20000),
					    .size = 1 + any(40),
					    .time_ns = 1000 + i };
		snprintf(name, sizeof(name), "%u", i);
		cr_assert_eq(codemap_add(&m, pieces[i].start, pieces[i].size, pieces[i].time_ns,
					 str_from(name), 0),
			     0);
		for (unsigned k = 0; k < 4; k++) {
			uint64_t address = 0x1000 + any(20100), time_ns = 900 + any(3300);
			int best = plain(pieces, i + 1, address, time_ns);

			snprintf(want, sizeof(want), "%d", best);
			cr_assert_str_eq(at(&m, address, time_ns), best < 0 ? "none" : want);
		}
	}
	codemap_done(&m);
}

Test(codemap, stops_at_its_ceiling_and_keeps_what_it_has)
{
	struct codemap m;
	unsigned n = 0;
	int r = 0;

	codemap_init(&m, MIB);
	for (; r == 0; n++)
		r = codemap_add(&m, 0x1000 + n * 16, 16, 0, STR_LIT("name"), 0);
	cr_expect_eq(r, CODEMAP_FULL);
	cr_expect_gt(n, 10000);
	cr_expect_str_eq(at(&m, 0x1000, 1), "name");
	cr_expect_str_eq(at(&m, 0x1000 + (n - 2) * 16, 1), "name");
	cr_expect_leq(codemap_bytes(&m), 2 * MIB);
	codemap_done(&m);
}

/* A million pieces at one address, at falling addresses, or each within the one before: this takes
 * about as long as a million ordinary ones. */
Test(codemap, takes_its_time_and_no_more, .timeout = 60)
{
	for (unsigned kind = 0; kind < 3; kind++) {
		uint64_t began = clock_mono_ns();
		struct codemap m;

		codemap_init(&m, 128 * MIB);
		for (uint64_t i = 0; i < 300000; i++) {
			uint64_t start = kind == 0   ? 0x1000
					 : kind == 1 ? 0x10000000 - i * 16
						     : 0x1000 + i;
			uint64_t size = kind == 2 ? 700000 - 2 * i : 16;

			cr_assert_eq(codemap_add(&m, start, size, 1 + i, STR_LIT("x"), 0), 0);
			if (i % 1000 == 0)
				cr_assert_str_eq(at(&m, start, i + 1), "x");
		}
		cr_expect_lt(clock_mono_ns() - began, 15000000000ull, "kind %u", kind);
		codemap_done(&m);
	}
}
