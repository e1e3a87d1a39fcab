/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, rules and mappings in the tables, and their eviction when there is no room. */
#include <unistd.h>
#include "bpf/walk/walk.h"
#include "tests/unit/tables_fixture.h"

TestSuite(tables, .init = setup, .fini = teardown);

/* A file whose row i is at i * step, with rule i % rules. */
static uint16_t add_file(uint64_t base, uint64_t span, uint32_t rows, uint32_t step, uint32_t rules)
{
	uint16_t slot;

	cr_assert_eq(tables_file_new(t, &slot), 0);
	cr_assert_eq(tables_rows_begin(t, slot, base, span, rows, rules), 0);
	for (uint32_t i = 0; i < rules; i++) {
		struct unwind_rule r = rule(8 + 8 * (int32_t)i);

		cr_assert_eq(tables_rows_rules(t, slot, &r, 1), 0);
	}
	struct unwind_row_wire *w = calloc(rows, sizeof(*w));
	for (uint32_t i = 0; i < rows; i++)
		w[i] = (struct unwind_row_wire){ .offset = i * step, .rule = i % rules };
	/* In two chunks, so that a block lies across them. */
	cr_assert_eq(tables_rows_chunk(t, slot, w, rows / 2), 0);
	cr_assert_eq(tables_rows_chunk(t, slot, w + rows / 2, rows - rows / 2), 0);
	free(w);
	cr_assert_eq(tables_rows_end(t, slot), 0);
	return slot;
}

static uint32_t look_number(uint16_t slot, uint64_t offset)
{
	static struct env env;
	static struct walk w;

	tables_env(t, &env);
	env_current = &env;
	w.file = env.files[slot];
	return walk_find_rule(&w.file, offset);
}

static const struct unwind_rule *look(uint16_t slot, uint64_t offset)
{
	const struct unwind_rule *r = env_rule(look_number(slot, offset));

	cr_assert_not_null(r);
	return r;
}

Test(tables, every_offset_finds_the_last_row_at_or_below_it)
{
	const uint64_t base = 0x5000;
	uint16_t slot = add_file(base, 0x9000, 1000, 36, 7);

	cr_assert_eq(tables_file_state(t, slot), TABLES_FILE_READY);
	for (uint64_t at = 0; at < 0x9000; at++) {
		uint64_t row = at / 36 < 999 ? at / 36 : 999;

		cr_assert_eq(look(slot, base + at)->cfa_off, 8 + 8 * (int32_t)(row % 7), "at %#lx",
			     at);
	}
}

Test(tables, outside_of_the_span_there_is_a_gap)
{
	uint16_t slot = add_file(0x5000, 0x2000, 10, 100, 2);

	cr_assert_eq(look(slot, 0x4fff)->cfa, UNWIND_CFA_END);
	cr_assert_eq(look(slot, 0x7000)->cfa, UNWIND_CFA_END);
	cr_assert_eq(look(slot, 1ull << 47)->cfa, UNWIND_CFA_END);
}

Test(tables, a_row_at_every_byte_is_found)
{
	uint16_t slot = add_file(0, 0x4000, 0x4000, 1, 5);

	for (uint32_t at = 0; at < 0x4000; at++)
		cr_assert_eq(look(slot, at)->cfa_off, 8 + 8 * (int32_t)(at % 5));
}

Test(tables, equal_rules_of_two_files_are_one)
{
	struct tables_figures f;

	add_file(0, 0x1000, 10, 16, 5);
	add_file(0, 0x1000, 10, 16, 5);
	tables_figures(t, &f);
	cr_assert_eq(f.rules, 5);
}

/* The number of a file's only rule. */
static uint32_t number_of(const struct unwind_rule *r)
{
	struct unwind_row_wire row = { 0 };
	uint16_t slot;

	cr_assert_eq(tables_file_new(t, &slot), 0);
	cr_assert_eq(tables_rows_begin(t, slot, 0, 0x1000, 1, 1), 0);
	cr_assert_eq(tables_rows_rules(t, slot, r, 1), 0);
	cr_assert_eq(tables_rows_chunk(t, slot, &row, 1), 0);
	cr_assert_eq(tables_rows_end(t, slot), 0);
	uint32_t number = look_number(slot, 0x800);
	tables_file_free(t, slot);
	return number;
}

Test(tables, an_ordinary_rule_is_its_own_number)
{
	/* Not 0, which is another kind of rule (TABLES_RULE_STUB). */
	for (int i = 7; i < 2 * 256 * 8 * 8; i += 7) {
		int32_t rbp = i & 7;
		struct unwind_rule r = {
			.cfa = UNWIND_CFA_REG,
			.cfa_reg = i >> 14 ? UNWIND_REG_RBP : UNWIND_REG_RSP,
			.cfa_off = (i >> 6 & 255) * 8,
			.rbp = rbp ? UNWIND_RBP_CFA : UNWIND_RBP_SAME,
			.rbp_off = -8 * rbp,
			.rbx = (uint8_t)(i >> 3 & 7),
			.flags = i & 1 ? UNWIND_DERIVED : 0,
		};
		uint32_t n = number_of(&r);

		cr_assert(n & TABLES_RULE_SHORT);
		cr_assert_eq(!!(n & TABLES_RULE_SHORT_RBP), r.cfa_reg == UNWIND_REG_RBP);
		cr_assert_eq(TABLES_RULE_SHORT_CFA(n) * 8, (uint32_t)r.cfa_off);
		cr_assert_eq(TABLES_RULE_SHORT_RBP_AT(n), (uint32_t)rbp);
		cr_assert_eq(TABLES_RULE_SHORT_RBX_AT(n), r.rbx);
		/* Slots and what they held are free again later. */
		if (i % 1024 < 7)
			tables_tick(t, (uint64_t)i * TABLES_GRACE_NS + 2);
	}
}

Test(tables, rules_that_do_not_fit_a_short_one_use_the_array)
{
	const struct unwind_rule still = { .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP };

	cr_expect_not(number_of(&still) & TABLES_RULE_SHORT);
	const struct unwind_rule ordinary = { .cfa = UNWIND_CFA_REG,
					      .cfa_reg = UNWIND_REG_RSP,
					      .cfa_off = 64,
					      .rbp = UNWIND_RBP_CFA,
					      .rbp_off = -16 };
	struct unwind_rule others[15];

	for (int i = 0; i < 15; i++)
		others[i] = ordinary;
	others[0].cfa = UNWIND_CFA_DEREF;
	others[1].cfa_reg = 10;
	others[2].cfa_off = 2048;
	others[3].cfa_off = -8;
	others[4].cfa_off = 12;
	others[5].rbp_off = -64;
	others[6].rbp_off = 0;
	others[7].rbp_off = -12;
	others[8].rbp = UNWIND_RBP_UNDEFINED;
	others[9].rbp = UNWIND_RBP_DEREF_REG;
	others[10].ra = UNWIND_RA_UNDEFINED;
	others[11].ra = UNWIND_RA_CFA_OFF;
	others[12].rbx = 8;
	others[13].flags = UNWIND_SIGNAL_FRAME;
	others[14].index = 1;
	for (int i = 0; i < 15; i++) {
		uint32_t n = number_of(&others[i]);

		cr_assert_not(n & TABLES_RULE_SHORT, "%d", i);
		const struct unwind_rule *r = env_rule(n);
		cr_assert_not_null(r);
		cr_assert_eq(memcmp(r, &others[i], sizeof(others[i])), 0, "%d", i);
	}
	cr_assert(number_of(&ordinary) & TABLES_RULE_SHORT);
}

Test(tables, unsorted_rows_are_refused)
{
	uint16_t slot;
	struct unwind_rule r = rule(8);
	struct unwind_row_wire w[2] = { { .offset = 64 }, { .offset = 64 } };

	cr_assert_eq(tables_file_new(t, &slot), 0);
	cr_assert_eq(tables_rows_begin(t, slot, 0, 0x1000, 2, 1), 0);
	cr_assert_eq(tables_rows_rules(t, slot, &r, 1), 0);
	cr_assert_eq(tables_rows_chunk(t, slot, w, 2), TABLES_BAD_ROWS);
	cr_assert_eq(tables_file_state(t, slot), TABLES_FILE_PENDING);
}

Test(tables, rows_beyond_what_was_announced_are_refused)
{
	uint16_t slot;
	struct unwind_rule r = rule(8);
	struct unwind_row_wire w[2] = { { .offset = 0 }, { .offset = 0x1000 } };

	cr_assert_eq(tables_file_new(t, &slot), 0);
	cr_assert_eq(tables_rows_begin(t, slot, 0, 0x1000, 2, 1), 0);
	cr_assert_eq(tables_rows_chunk(t, slot, w, 1), TABLES_BAD_ROWS, "rows before rules");
	cr_assert_eq(tables_rows_begin(t, slot, 0, 0x1000, 2, 1), 0);
	cr_assert_eq(tables_rows_rules(t, slot, &r, 1), 0);
	cr_assert_eq(tables_rows_chunk(t, slot, w, 2), TABLES_BAD_ROWS, "past the span");
	cr_assert_eq(tables_rows_begin(t, slot, 0, 0x1000, 1, 1), 0);
	r.cfa_reg = 16;
	cr_assert_eq(tables_rows_rules(t, slot, &r, 1), TABLES_BAD_ROWS, "no such register");
	cr_assert_eq(tables_rows_begin(t, slot, 0x123, 0x1000, 1, 1), TABLES_BAD_ROWS,
		     "a base that is no block's");
	cr_assert_eq(tables_rows_begin(t, slot, 0, UNWIND_MAX_SPAN + 1ull, 1, 1), TABLES_BAD_ROWS);
}

Test(tables, at_the_ceiling_the_file_sampled_least_is_evicted_for_one_sampled_more)
{
	struct tables_figures f;
	uint16_t a = add_file(0, 0x200000, 0x4000, 128, 3),
		 b = add_file(0, 0x200000, 0x4000, 128, 3), slot;
	struct unwind_rule r = rule(8);
	int v = 0;

	for (int k = 0; k < 9; k++)
		tables_file_touch(t, a, 100 + k);
	tables_file_touch(t, b, 50);
	/* Large files until no more fits: two bytes a row, each block almost full. */
	for (int i = 0; i < 40 && !v; i++) {
		cr_assert_eq(tables_file_new(t, &slot), 0);
		for (int k = 0; k < 5; k++)
			tables_file_touch(t, slot, 1000 + k);
		v = tables_rows_begin(t, slot, 0, 0x40000, 0x20000, 1);
		if (!v)
			v = tables_rows_rules(t, slot, &r, 1);
		struct unwind_row_wire *w = calloc(0x20000, sizeof(*w));
		for (uint32_t k = 0; k < 0x20000; k++)
			w[k].offset = k * 2;
		if (!v)
			v = tables_rows_chunk(t, slot, w, 0x20000);
		free(w);
		if (!v)
			v = tables_rows_end(t, slot);
	}
	cr_assert_eq(v, TABLES_FULL);
	tables_file_full(t, slot);
	cr_assert_not(tables_file_again(t, slot), "its turn comes after the grace period");
	cr_assert_eq(tables_file_state(t, b), TABLES_FILE_EVICTED);
	cr_assert_eq(tables_file_state(t, a), TABLES_FILE_READY);
	tables_figures(t, &f);
	cr_assert_leq(f.bytes, 3 * TABLES_SLAB_BYTES);
	uint64_t before = f.bytes_used;
	tables_tick(t, 2);
	tables_tick(t, 2 + TABLES_GRACE_NS);
	tables_figures(t, &f);
	cr_assert_lt(f.bytes_used, before);
	tables_tick(t, 2 * TABLES_GRACE_NS);
	for (int k = 0; k < 10; k++)
		tables_file_touch(t, slot, 2000 + k);
	cr_assert(tables_file_again(t, slot), "others were sampled less");
}

Test(tables, a_file_that_nothing_maps_makes_room_before_one_that_runs)
{
	struct unwind_rule r = rule(8);
	uint16_t running = add_file(0, 0x200000, 0x4000, 128, 3),
		 ended = add_file(0, 0x200000, 0x4000, 128, 3), slot;

	for (int k = 0; k < 10; k++)
		tables_file_touch(t, running, 100 + k);
	for (int k = 0; k < 40; k++)
		tables_file_touch(t, ended, 100 + k);
	tables_file_unmapped(t, ended);
	for (int i = 0; i < 60 && tables_file_state(t, ended) == TABLES_FILE_READY &&
			tables_file_state(t, running) == TABLES_FILE_READY;
	     i++) {
		cr_assert_eq(tables_file_new(t, &slot), 0);
		for (int k = 0; k < 12; k++)
			tables_file_touch(t, slot, 1000 + k);
		if (tables_rows_begin(t, slot, 0, 0x40000, 0x20000, 1) ||
		    tables_rows_rules(t, slot, &r, 1))
			break;
		struct unwind_row_wire *w = calloc(0x20000, sizeof(*w));

		for (uint32_t k = 0; k < 0x20000; k++)
			w[k].offset = k * 2;
		const int v = tables_rows_chunk(t, slot, w, 0x20000);

		free(w);
		if (v || tables_rows_end(t, slot))
			break;
	}
	cr_assert_eq(tables_file_state(t, ended), TABLES_FILE_PENDING,
		     "its rows wait to be asked for");
	cr_assert_eq(tables_file_state(t, running), TABLES_FILE_READY);
}

Test(tables, files_sampled_alike_do_not_take_each_others_place)
{
	uint16_t a = add_file(0, 0x200000, 0x4000, 128, 3), slot;
	int v = 0;

	tables_file_touch(t, a, 100);
	tables_file_touch(t, a, 101);
	for (int i = 0; i < 40 && !v; i++) {
		cr_assert_eq(tables_file_new(t, &slot), 0);
		for (int k = 0; k < 2; k++)
			tables_file_touch(t, slot, 1000 + k);
		v = tables_rows_begin(t, slot, 0, 0x100000, 0x20000, 1);
		struct unwind_rule r = rule(8);
		if (!v)
			v = tables_rows_rules(t, slot, &r, 1);
		struct unwind_row_wire *w = calloc(0x20000, sizeof(*w));
		for (uint32_t k = 0; k < 0x20000; k++)
			w[k].offset = k * 2;
		if (!v)
			v = tables_rows_chunk(t, slot, w, 0x20000);
		free(w);
		if (!v)
			v = tables_rows_end(t, slot);
	}
	cr_assert_eq(v, TABLES_FULL);
	tables_file_full(t, slot);
	cr_assert_eq(tables_file_state(t, a), TABLES_FILE_READY);
	tables_tick(t, 2 * TABLES_GRACE_NS);
	cr_assert_not(tables_file_again(t, slot));
}

/* Adds files, each sampled `samples` times, until one finds no room. Returns that one, or the
 * last. */
static uint16_t fill(unsigned samples, uint64_t now_ns)
{
	struct unwind_rule r = rule(8);
	uint16_t slot = 0;
	int v = 0;

	for (int i = 0; i < 60 && !v; i++) {
		struct unwind_row_wire *w = calloc(0x20000, sizeof(*w));

		for (uint32_t k = 0; k < 0x20000; k++)
			w[k].offset = k * 2;
		cr_assert_eq(tables_file_new(t, &slot), 0);
		for (unsigned k = 0; k < samples; k++)
			tables_file_touch(t, slot, now_ns + k);
		v = tables_rows_begin(t, slot, 0, 0x40000, 0x20000, 1);
		if (!v)
			v = tables_rows_rules(t, slot, &r, 1);
		if (!v)
			v = tables_rows_chunk(t, slot, w, 0x20000);
		if (!v)
			v = tables_rows_end(t, slot);
		free(w);
	}
	cr_assert_eq(v, TABLES_FULL);
	tables_file_full(t, slot);
	return slot;
}

Test(tables, rows_that_were_not_sampled_for_long_go_for_a_file_that_comes)
{
	struct tables_figures f;
	const uint64_t later = 20 * TABLES_GRACE_NS;

	(void)fill(3, 100);
	tables_figures(t, &f);
	const uint64_t before = f.evictions;

	tables_tick(t, later);
	(void)fill(0, 0);
	tables_figures(t, &f);
	cr_assert_gt(f.evictions, before);
	tables_tick(t, later + 1);
	tables_tick(t, later + 1 + TABLES_GRACE_NS);
	add_file(0, 0x40000, 0x8000, 8, 1);
}

/* Mappings like those of a process: n of them, from address 0 on. */
static struct tables_mapping *many(size_t n)
{
	struct tables_mapping *m = calloc(n, sizeof(*m));

	for (size_t i = 0; i < n; i++)
		m[i] = (struct tables_mapping){ .start = 0x2000 * i, .end = 0x2000 * i + 0x1000 };
	return m;
}

Test(tables, many_mappings_of_a_process_that_is_not_sampled_take_no_rows_place)
{
	struct tables_mapping *m = many(8000);
	struct tables_figures f;
	uint32_t generation;

	(void)fill(3, 100);
	tables_figures(t, &f);
	const uint64_t before = f.evictions;

	cr_assert_eq(tables_process_set(t, 1, 1, 0, m, 8000, true, &generation), TABLES_FULL);
	tables_figures(t, &f);
	cr_assert_eq(f.evictions, before);
	/* A few of its mappings do. */
	(void)tables_process_set(t, 1, 1, 0, m, 1000, true, &generation);
	tables_tick(t, 2);
	tables_tick(t, 2 + TABLES_GRACE_NS);
	cr_assert_eq(tables_process_set(t, 1, 1, 0, m, 1000, true, &generation), 0);
	/* All of them fit once it was sampled. */
	tables_figures(t, &f);
	const uint64_t then = f.evictions;

	tables_process_touch(t, 1, 2 + TABLES_GRACE_NS);
	(void)tables_process_set(t, 1, 1, 0, m, 8000, true, &generation);
	tables_tick(t, 3 + TABLES_GRACE_NS);
	tables_tick(t, 3 + 2 * TABLES_GRACE_NS);
	cr_assert_eq(tables_process_set(t, 1, 1, 0, m, 8000, true, &generation), 0);
	tables_figures(t, &f);
	cr_assert_gt(f.evictions, then);
	free(m);
}

Test(tables, mappings_published_repeatedly_use_a_part_of_the_room)
{
	struct tables_mapping *m = many(4000);
	struct tables_figures f;
	uint32_t generation;
	unsigned taken = 0;

	for (uint64_t i = 0; i < 100; i++)
		taken += !tables_process_set(t, 1, 1, 0, m, 4000, true, &generation);
	tables_figures(t, &f);
	cr_assert(taken > 0 && f.bytes_used <= 3 * TABLES_SLAB_BYTES / 8, "%u, %lu", taken,
		  f.bytes_used);
	/* It continues after the grace period. */
	tables_tick(t, 2);
	tables_tick(t, 2 + TABLES_GRACE_NS);
	cr_assert_eq(tables_process_set(t, 1, 1, 0, m, 4000, true, &generation), 0);
	tables_process_drop(t, 1);
	tables_tick(t, 3 + TABLES_GRACE_NS);
	tables_tick(t, 3 + 2 * TABLES_GRACE_NS);
	tables_figures(t, &f);
	cr_assert_eq(f.bytes_used, 0);
	free(m);
}

Test(tables, nothing_is_left_of_processes_that_came_and_went)
{
	struct tables_figures first, last;
	struct tables_mapping m[3] = { { 0x1000, 0x2000, 0, 0 },
				       { 0x3000, 0x5000, 0x1000, 0 },
				       { 0x7000, 0x8000, 0, 0 } };
	uint32_t generation, before = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		tables_tick(t, i * 1000000ull);
		cr_assert_eq(tables_process_set(t, 100 + i, i, i, m, 3, true, &generation), 0);
		cr_assert_neq(generation, before);
		before = generation;
		tables_process_drop(t, 100 + i);
		if (i == 5000)
			tables_figures(t, &first);
	}
	tables_figures(t, &last);
	cr_assert_eq(last.bytes, first.bytes);
	cr_assert_eq(last.processes, 0);
	tables_tick(t, UINT64_MAX / 4);
	tables_tick(t, UINT64_MAX / 2);
	tables_figures(t, &last);
	cr_assert_eq(last.bytes_used, 0);
}

Test(tables, a_slot_used_again_has_another_serial)
{
	uint16_t a, b;

	cr_assert_eq(tables_file_new(t, &a), 0);
	uint32_t serial = tables_file_serial(t, a);
	tables_file_free(t, a);
	cr_assert_eq(tables_file_new(t, &b), 0);
	cr_assert_neq(a, b, "within the grace period");
	tables_tick(t, 2);
	tables_tick(t, 2 + TABLES_GRACE_NS);
	cr_assert_eq(tables_file_new(t, &b), 0);
	cr_assert_eq(a, b);
	cr_assert_neq(tables_file_serial(t, b), serial);
}

Test(tables, the_grace_period_begins_with_the_first_drain_after_the_freeing)
{
	uint16_t a, b;

	cr_assert_eq(tables_file_new(t, &a), 0);
	tables_tick(t, 10);
	/* Freed at the end of a stall that the tables do not know about: samples of its last
	 * moments, which name the slot, are not drained yet. */
	tables_file_free(t, a);
	tables_tick(t, 10 + 3 * TABLES_GRACE_NS);
	cr_assert_eq(tables_file_new(t, &b), 0);
	cr_assert_neq(a, b);
	tables_tick(t, 9 + 4 * TABLES_GRACE_NS);
	cr_assert_eq(tables_file_new(t, &b), 0);
	cr_assert_neq(a, b);
	tables_tick(t, 10 + 4 * TABLES_GRACE_NS);
	cr_assert_eq(tables_file_new(t, &b), 0);
	cr_assert_eq(a, b);
}

Test(tables, memory_of_evicted_rows_is_used_again_once_no_walk_reads_it)
{
	const struct tables_config c = kernel_tables(3 * TABLES_SLAB_BYTES);
	uint16_t full, ended, late;

	tables_free(t);
	cr_assert_eq(tables_new(&c, &t), 0);
	tables_tick(t, 1);
	full = fill(200, 100);
	ended = full - 1;
	cr_assert_eq(tables_file_state(t, ended), TABLES_FILE_READY);
	tables_file_unmapped(t, ended);
	tables_tick(t, 1000000000);
	cr_assert_eq(tables_file_new(t, &late), 0);
	tables_file_touch(t, late, 1000000000);
	/* In memory of this process, this is TABLES_FULL until the grace period ends. */
	cr_assert_eq(tables_rows_begin(t, late, 0, 0x40000, 0x20000, 1), 0);
	cr_assert_eq(tables_file_state(t, ended), TABLES_FILE_PENDING);
	cr_assert_eq(tables_file_state(t, full - 2), TABLES_FILE_READY);
	close(c.slabs_fd);
}

Test(tables, memory_above_a_lowered_limit_is_handed_back)
{
	struct tables_mapping m[3] = { { 0x1000, 0x2000, 0, 0 }, { 0x3000, 0x5000, 0x1000, 0 } };
	struct tables_figures f;
	uint64_t all;
	uint16_t slot[8];
	uint32_t generation;

	/* A slab and a half of rows, and mappings among them. */
	for (int i = 0; i < 8; i++) {
		slot[i] = add_file(0, 0x80000, 0x20000, 4, 2);
		cr_assert_eq(tables_process_set(t, 10 + i, 1, 0, m, 2, true, &generation), 0);
		for (int k = 0; k < 1 + i; k++)
			tables_file_touch(t, slot[i], 100 + k);
	}
	tables_figures(t, &f);
	cr_assert_eq(f.bytes, 3 * TABLES_SLAB_BYTES);
	tables_tick(t, 1);
	tables_limit(t, TABLES_SLAB_BYTES);
	/* There is room for a few mappings all the while. */
	tables_tick(t, 1000000000ull);
	tables_figures(t, &f);
	cr_assert_eq(f.bytes, TABLES_SLAB_BYTES, "at once: a tool may have taken their memory");
	cr_assert_eq(tables_process_set(t, 10, 1, 0, m, 1, true, &generation), 0);
	for (uint64_t s = 1; s < 9; s++)
		tables_tick(t, s * 1100000000ull);
	tables_figures(t, &f);
	cr_assert_eq(f.bytes, TABLES_SLAB_BYTES, "%lu", f.bytes);
	cr_assert_leq(f.bytes_used, TABLES_SLAB_BYTES);
	cr_assert_eq(f.processes, 8, "a process keeps its mappings");
	cr_assert_geq(f.evictions, 5, "more than half of the rows");
	cr_assert_gt(tables_lacking(t, &all), 0);
	/* Room that becomes free for a while is used; room that is free for a moment is not. */
	tables_limit(t, 2 * TABLES_SLAB_BYTES);
	tables_limit(t, TABLES_SLAB_BYTES);
	for (uint64_t s = 9; s < 12; s++) {
		tables_tick(t, s * 1100000000ull);
		tables_limit(t, (s == 10 ? 4 : 3) * TABLES_SLAB_BYTES);
		if (s < 11)
			cr_assert_not(tables_fit(t, TABLES_SLAB_BYTES / 2));
	}
	cr_assert(tables_fit(t, TABLES_SLAB_BYTES / 2));
	for (int i = 0; i < 4; i++)
		add_file(0, 0x80000, 0x20000, 4, 2);
	tables_figures(t, &f);
	cr_assert_gt(f.bytes, TABLES_SLAB_BYTES);
}

Test(tables, a_ceiling_that_left_room_rises_at_once)
{
	uint16_t waits;

	tables_limit(t, 8 * TABLES_SLAB_BYTES);
	tables_tick(t, 1000000000ull);
	tables_limit(t, 2 * TABLES_SLAB_BYTES);
	cr_assert_eq(tables_file_new(t, &waits), 0);
	cr_assert_eq(tables_rows_begin(t, waits, 0, 0x1000000, 3 * TABLES_SLAB_WORDS, 1),
		     TABLES_FULL);
	tables_file_full(t, waits);
	tables_tick(t, 1100000000ull);
	cr_assert_not(tables_file_again(t, waits), "nothing has changed");
	tables_limit(t, 6 * TABLES_SLAB_BYTES);
	cr_assert(tables_file_again(t, waits), "it need not wait for what would be evicted");
}

Test(tables, a_ceiling_falls_at_once_after_another_has_fallen)
{
	struct tables_figures f;

	tables_limit(t, 8 * TABLES_SLAB_BYTES);
	for (int i = 0; i < 8; i++)
		add_file(0, 0x80000, 0x20000, 4, 2);
	tables_tick(t, 1000000000ull);
	tables_figures(t, &f);
	tables_limit(t, f.bytes);
	cr_assert(tables_fit(t, TABLES_SLAB_BYTES / 8));
	tables_tick(t, 1100000000ull);
	for (uint16_t slot = 2; slot < 10; slot++)
		tables_file_free(t, slot);
	for (uint64_t s = 2; s < 7; s++)
		tables_tick(t, s * 1000000000ull);
	tables_limit(t, 2 * TABLES_SLAB_BYTES);
	cr_assert(tables_fit(t, TABLES_SLAB_BYTES), "nothing else is left");
	cr_assert_not(tables_fit(t, 2 * TABLES_SLAB_BYTES), "the new ceiling holds");
}

Test(tables, nothing_is_evicted_for_rows_that_would_still_not_fit)
{
	struct tables_figures f;
	uint64_t all;
	uint16_t small[4], large;

	for (int i = 0; i < 4; i++) {
		small[i] = add_file(0, 0x80000, 0x20000, 4, 2);
		tables_file_touch(t, small[i], 100);
	}
	cr_assert_eq(tables_file_new(t, &large), 0);
	for (int k = 0; k < 90; k++)
		tables_file_touch(t, large, 1000 + k);
	cr_assert_eq(tables_rows_begin(t, large, 0, 0x1000000, 3 * TABLES_SLAB_WORDS, 1),
		     TABLES_FULL);
	tables_file_full(t, large);
	tables_tick(t, 1);
	tables_tick(t, 4 * TABLES_GRACE_NS);
	cr_assert_not(tables_file_again(t, large));
	tables_figures(t, &f);
	cr_assert_eq(f.evictions, 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(tables_file_state(t, small[i]), TABLES_FILE_READY);
	cr_assert_geq(tables_lacking(t, &all), 3 * TABLES_SLAB_BYTES);
	/* With more memory it has room. */
	cr_assert(tables_file_lacks(t, large));
	cr_assert_not(tables_file_lacks(t, small[0]));
	tables_limit(t, 6 * TABLES_SLAB_BYTES);
	tables_tick(t, 5 * TABLES_GRACE_NS);
	tables_file_touch(t, large, 5 * TABLES_GRACE_NS);
	cr_assert(tables_fit(t, tables_rows_bytes(0x1000000, 3 * TABLES_SLAB_WORDS)));
	cr_assert(tables_file_again(t, large));
	tables_file_pending(t, large);
	cr_assert(tables_file_lacks(t, large), "it was not there when a sample was walked");
	tables_file_none(t, large);
	tables_file_pending(t, large);
	cr_assert_not(tables_file_lacks(t, large), "it waits, and not for memory");
}

Test(tables, many_sampled_files_are_not_evicted_for_a_less_sampled_one)
{
	struct tables_figures f;
	uint16_t small[8], large;

	for (int i = 0; i < 8; i++) {
		small[i] = add_file(0, 0x80000, 0x20000, 4, 2);
		for (int k = 0; k < 10; k++)
			tables_file_touch(t, small[i], 100 + k);
	}
	cr_assert_eq(tables_file_new(t, &large), 0);
	for (int k = 0; k < 50; k++)
		tables_file_touch(t, large, 1000 + k);
	/* Seven of them would have to be evicted, with 70 samples. */
	cr_assert_eq(tables_rows_begin(t, large, 0, 0x100000, 2 * TABLES_SLAB_WORDS, 1),
		     TABLES_FULL);
	tables_figures(t, &f);
	cr_assert_eq(f.evictions, 0);
}

Test(tables, unused_rows_are_evicted_before_room_is_needed)
{
	struct tables_figures f;
	uint64_t all;

	uint16_t first = 0;

	for (int i = 0; i < 11; i++) {
		const uint16_t slot = add_file(0, 0x80000, 0x20000, 4, 2);

		first = first ? first : slot;
	}
	tables_figures(t, &f);
	cr_assert_gt(f.bytes_used, 5 * TABLES_SLAB_BYTES / 2, "%lu", f.bytes_used);
	tables_tick(t, 11000000000ull);
	tables_tick(t, 12100000000ull);
	tables_tick(t, 14200000000ull);
	tables_figures(t, &f);
	cr_assert_leq(f.bytes_used, 21 * TABLES_SLAB_BYTES / 8, "%lu", f.bytes_used);
	cr_assert_gt(f.bytes_used, 2 * TABLES_SLAB_BYTES, "but not more than that");
	cr_assert_eq(tables_lacking(t, &all), 0, "no file lacks them");
	/* The rows of a file that runs again are back after a moment. A walk is cut only where
	 * there is no room. */
	cr_assert_eq(tables_file_state(t, first), TABLES_FILE_PENDING);
	cr_assert_not(tables_file_lacks(t, first));
	tables_file_touch(t, first, 14200000001ull);
	cr_assert(tables_file_again(t, first));
	cr_assert_not(tables_file_again(t, first), "once");
	uint16_t second = first;

	tables_limit(t, TABLES_SLAB_BYTES);
	for (uint64_t tick = 15; tick < 20; tick++)
		tables_tick(t, tick * 1000000000);
	while (tables_file_state(t, ++second) != TABLES_FILE_PENDING)
		cr_assert_leq(second, first + 10);
	while (tables_fit(t, 0x20000 * sizeof(uint32_t)))
		tables_file_touch(t, add_file(0, 0x20000, 0x8000, 4, 2), 19000000001ull);
	(void)tables_file_again(t, second);
	cr_assert_eq(tables_file_state(t, second), TABLES_FILE_EVICTED);
	cr_assert(tables_file_lacks(t, second));
}
