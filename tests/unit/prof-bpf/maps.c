/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "common/base/system/clock.h"
#include "tools/prof-bpf/files/files.h"
#include "tools/prof-bpf/host/maps/maps.h"

#define BACKINGS 8
#define PAGES 512

/* Only references are counted. */
static struct files_backing backings[BACKINGS];

struct files_backing *files_backing_get(struct files_backing *b)
{
	if (b)
		b->refs++;
	return b;
}

void files_backing_put(struct files_backing *b)
{
	if (b)
		cr_assert_gt(b->refs--, 0);
}

static unsigned references(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < BACKINGS; i++)
		n += backings[i].refs;
	return n;
}

static void add(struct maps **m, uint64_t start, uint64_t end, uint64_t offset, unsigned backing)
{
	struct map a = { .start = start,
			 .end = end,
			 .offset = offset,
			 .backing = files_backing_get(&backings[backing]) };

	cr_assert_eq(maps_add(m, &a), 0);
}

static void settle(struct maps *m)
{
	uint64_t dropped = 0;

	cr_assert_eq(maps_settle(m, 1u << 20, &dropped), 0);
	cr_assert_eq(dropped, 0);
}

static void expect(const struct maps *m, size_t at, uint64_t start, uint64_t end, uint64_t offset,
		   unsigned backing)
{
	cr_assert_lt(at, m->len);
	cr_assert_eq(m->at[at].start, start, "%zu: %lx", at, (unsigned long)m->at[at].start);
	cr_assert_eq(m->at[at].end, end, "%zu: %lx", at, (unsigned long)m->at[at].end);
	cr_assert_eq(m->at[at].offset, offset);
	cr_assert_eq(m->at[at].backing, &backings[backing]);
}

Test(maps, hole_in_the_middle_leaves_both_sides)
{
	struct maps *m = maps_new();

	add(&m, 0x1000, 0x9000, 0x100000, 0);
	settle(m);
	add(&m, 0x3000, 0x4000, 0, 1);
	settle(m);
	cr_assert_eq(m->len, 3);
	expect(m, 0, 0x1000, 0x3000, 0x100000, 0);
	expect(m, 1, 0x3000, 0x4000, 0, 1);
	expect(m, 2, 0x4000, 0x9000, 0x103000, 0);
	maps_put(m);
	cr_assert_eq(references(), 0);
}

Test(maps, new_one_over_several_takes_their_place)
{
	struct maps *m = maps_new();

	for (unsigned i = 1; i < 8; i++)
		add(&m, i * 0x2000, i * 0x2000 + 0x1000, 0, i);
	settle(m);
	add(&m, 0x4800, 0xa800, 0, 0);
	settle(m);
	cr_assert_eq(m->len, 6);
	expect(m, 1, 0x4000, 0x4800, 0, 2);
	expect(m, 2, 0x4800, 0xa800, 0, 0);
	expect(m, 3, 0xa800, 0xb000, 0x800, 5);
	maps_put(m);
	cr_assert_eq(references(), 0);
}

Test(maps, fork_keeps_what_it_had_when_the_other_changes)
{
	struct maps *m = maps_new();

	add(&m, 0x1000, 0x2000, 0, 0);
	settle(m);
	struct maps *child = maps_get(m);
	add(&m, 0x1000, 0x2000, 0, 1);
	settle(m);
	cr_assert_neq(m, child);
	expect(m, 0, 0x1000, 0x2000, 0, 1);
	expect(child, 0, 0x1000, 0x2000, 0, 0);
	maps_put(m);
	expect(child, 0, 0x1000, 0x2000, 0, 0);
	maps_put(child);
	cr_assert_eq(references(), 0);
}

Test(maps, empty_mapping_is_refused_and_its_reference_dropped)
{
	struct maps *m = maps_new();
	struct map a = { .start = 0x2000,
			 .end = 0x2000,
			 .backing = files_backing_get(&backings[0]) };

	cr_assert_eq(maps_add(&m, &a), -EINVAL);
	cr_assert_eq(references(), 0);
	maps_put(m);
}

Test(maps, ceiling_drops_the_highest_and_says_how_many)
{
	struct maps *m = maps_new();
	uint64_t dropped = 0;

	for (unsigned i = 0; i < 100; i++)
		add(&m, i * 0x2000, i * 0x2000 + 0x1000, 0, i % BACKINGS);
	cr_assert_eq(maps_settle(m, 60, &dropped), 0);
	cr_assert_eq(m->len, 60);
	cr_assert_eq(dropped, 40);
	cr_assert_eq(references(), 60);
	maps_put(m);
	cr_assert_eq(references(), 0);
}

Test(maps, look_up_finds_the_covering_one_only)
{
	struct maps *m = maps_new();

	add(&m, 0x1000, 0x2000, 0, 0);
	add(&m, 0x3000, 0x4000, 0, 1);
	settle(m);
	cr_assert_null(maps_find(m, 0xfff));
	cr_assert_eq(maps_find(m, 0x1000)->backing, &backings[0]);
	cr_assert_eq(maps_find(m, 0x1fff)->backing, &backings[0]);
	cr_assert_null(maps_find(m, 0x2000));
	cr_assert_eq(maps_find(m, 0x3fff)->backing, &backings[1]);
	cr_assert_null(maps_find(m, 0x4000));
	maps_put(m);
}

/* Compared with one word per page, for bursts of all sizes: one by one, and by sweeps. */
Test(maps, any_sequence_agrees_with_a_page_table)
{
	srand(7);
	for (unsigned round = 0; round < 300; round++) {
		struct maps *m = maps_new();
		struct {
			unsigned backing;
			uint64_t offset;
			bool there;
		} page[PAGES] = { 0 };

		for (unsigned bursts = 0; bursts < 4; bursts++) {
			unsigned n = (unsigned)rand() % 40;

			for (unsigned i = 0; i < n; i++) {
				unsigned from = (unsigned)rand() % PAGES,
					 len = 1 + (unsigned)rand() % (rand() % 4 ? 8 : 200);
				unsigned to = from + len > PAGES ? PAGES : from + len,
					 backing = (unsigned)rand() % BACKINGS;
				uint64_t offset = (uint64_t)(rand() % 100) << 12;

				add(&m, (uint64_t)from << 12, (uint64_t)to << 12, offset, backing);
				for (unsigned p = from; p < to; p++) {
					page[p].there = true;
					page[p].backing = backing;
					page[p].offset = offset + ((uint64_t)(p - from) << 12);
				}
			}
			settle(m);
		}
		for (unsigned p = 0; p < PAGES; p++) {
			const struct map *at = maps_find(m, (uint64_t)p << 12);

			cr_assert_eq(at != NULL, page[p].there);
			if (!at)
				continue;
			cr_assert_eq(at->backing, &backings[page[p].backing]);
			cr_assert_eq(at->offset + (((uint64_t)p << 12) - at->start),
				     page[p].offset);
		}
		for (uint32_t i = 1; i < m->len; i++)
			cr_assert_leq(m->at[i - 1].end, m->at[i].start);
		cr_assert_eq(references(), m->len);
		maps_put(m);
		cr_assert_eq(references(), 0);
	}
}

Test(maps, a_hundred_thousand_mappings_take_no_square_time)
{
	struct maps *m = maps_new();
	uint64_t before = clock_mono_ns();

	/* Downwards, as the kernel assigns addresses, in bursts like those of a drain. */
	for (unsigned i = 100000; i-- > 0;) {
		add(&m, (uint64_t)i * 0x2000, (uint64_t)i * 0x2000 + 0x1000, 0, 0);
		if (i % 5000 == 0)
			settle(m);
	}
	cr_assert_eq(m->len, 100000);
	cr_assert_lt(clock_mono_ns() - before, 3000000000ull);
	maps_put(m);
	cr_assert_eq(references(), 0);
}
