/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/rows.h"

#include <criterion/criterion.h>

static struct rows rows;
static struct unwind_row_wire given[64];

static void setup(void)
{
	rows_init(&rows);
	rows_segment_add(&rows, 0x401000, 0x1000, 0x200000);
	cr_assert_eq(rows_layout(&rows), 0);
}

static void teardown(void)
{
	rows_done(&rows);
}

static uint16_t rule(int32_t off)
{
	struct unwind_rule r = { .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP, .cfa_off = off };
	uint16_t number;

	cr_assert_eq(rows_rules_put(&rows.rules, &r, &number), 0);
	return number;
}

/* Adds a function of up to three rows: pairs of offset and rule, ended by rule -1. */
static void function(uint32_t start, uint32_t end, const int32_t *pairs)
{
	int r = rows_open(&rows, start, end);

	if (r == MSG_ROWS_NONE)
		return;
	cr_assert_eq(r, 0);
	for (; pairs[1] >= 0; pairs += 2)
		cr_assert_eq(rows_add(&rows, (uint32_t)pairs[0], rule(pairs[1])), 0);
	rows_close(&rows);
}
#define FUNCTION(start, end, ...) function(start, end, (const int32_t[]){ __VA_ARGS__, -1, -1 })

static size_t finish(void)
{
	struct rows_cursor c;
	size_t n = 0;

	cr_assert_eq(rows_finish(&rows), 0);
	rows_cursor_init(&c, &rows);
	while (n < 64 && rows_next(&c, &given[n]))
		n++;
	cr_assert_eq(n, rows.count);
	for (size_t i = 1; i < n; i++)
		cr_assert_lt(given[i - 1].offset, given[i].offset);
	return n;
}

static void is_row(size_t i, uint32_t offset, int32_t off)
{
	cr_assert_eq(given[i].offset, offset, "row %zu is at 0x%x, not 0x%x", i, given[i].offset,
		     offset);
	if (off < 0)
		cr_assert_eq(given[i].rule, ROWS_RULE_GAP);
	else
		cr_assert_eq(rows.rules.rule[given[i].rule].cfa_off, off);
}

TestSuite(rows, .init = setup, .fini = teardown);

Test(rows, equal_neighbours_are_one_row)
{
	FUNCTION(0x100, 0x120, 0x100, 8, 0x108, 8, 0x110, 16);
	FUNCTION(0x120, 0x140, 0x120, 16, 0x130, 8);
	cr_assert_eq(finish(), 4);
	is_row(0, 0x100, 8);
	is_row(1, 0x110, 16);
	is_row(2, 0x130, 8);
	is_row(3, 0x140, -1);
}

Test(rows, padding_of_15_bytes_is_no_gap_and_16_are)
{
	FUNCTION(0x100, 0x111, 0x100, 8);
	FUNCTION(0x120, 0x130, 0x120, 8);
	FUNCTION(0x140, 0x150, 0x140, 8);
	cr_assert_eq(finish(), 4);
	is_row(0, 0x100, 8);
	is_row(1, 0x130, -1);
	is_row(2, 0x140, 8);
	is_row(3, 0x150, -1);
}

Test(rows, functions_out_of_order_are_sorted)
{
	FUNCTION(0x100000, 0x100100, 0x100000, 8);
	FUNCTION(0x400, 0x500, 0x400, 16);
	FUNCTION(0x100, 0x200, 0x100, 24);
	cr_assert_eq(finish(), 6);
	is_row(0, 0x100, 24);
	is_row(2, 0x400, 16);
	is_row(4, 0x100000, 8);
}

Test(rows, lower_start_keeps_what_two_functions_share)
{
	FUNCTION(0x180, 0x280, 0x180, 16, 0x1f0, 24, 0x240, 32);
	FUNCTION(0x100, 0x200, 0x100, 8);
	FUNCTION(0x120, 0x130, 0x120, 40);
	cr_assert_eq(finish(), 4);
	is_row(0, 0x100, 8);
	is_row(1, 0x200, 24);
	is_row(2, 0x240, 32);
	is_row(3, 0x280, -1);
	cr_assert_eq(rows.skipped[ROWS_SKIP_OVERLAP], 1);
}

Test(rows, first_of_two_with_one_start_wins)
{
	FUNCTION(0x100, 0x200, 0x100, 8);
	FUNCTION(0x100, 0x200, 0x100, 16);
	cr_assert_eq(finish(), 2);
	is_row(0, 0x100, 8);
}

Test(rows, jumps_of_more_than_65535_bytes_are_kept)
{
	FUNCTION(0x100, 0x1f0000, 0x100, 8, 0x1e0000, 16);
	cr_assert_eq(finish(), 3);
	is_row(1, 0x1e0000, 16);
	is_row(2, 0x1f0000, -1);
}

Test(rows, filled_rows_only_cover_gaps)
{
	FUNCTION(0x200, 0x300, 0x200, 8);
	cr_assert_eq(finish(), 2);
	rows_fill(&rows);
	FUNCTION(0x100, 0x280, 0x100, 16, 0x220, 24);
	FUNCTION(0x280, 0x400, 0x280, 32);
	FUNCTION(0x300, 0x340, 0x300, 40);
	cr_assert_eq(finish(), 4);
	is_row(0, 0x100, 16);
	is_row(1, 0x200, 8);
	is_row(2, 0x300, 40);
	is_row(3, 0x340, -1);
	cr_assert_eq(rows.skipped[ROWS_SKIP_COVERED], 1);
}

Test(rows, row_past_its_function_is_dropped)
{
	FUNCTION(0x100, 0x110, 0x100, 8, 0x110, 16, 0x200, 24);
	cr_assert_eq(finish(), 2);
	is_row(1, 0x110, -1);
}

Test(rows, no_row_lies_at_the_end_of_the_span)
{
	FUNCTION(0x1fff00, 0x200000, 0x1fff00, 8);
	cr_assert_eq(finish(), 1);
}

Test(rows, rules_are_numbered_once_up_to_the_ceiling)
{
	struct unwind_rule r = { .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP };
	uint16_t number, again;

	for (int32_t i = 1; i < (int32_t)ROWS_MAX_RULES; i++) {
		r.cfa_off = i;
		cr_assert_eq(rows_rules_put(&rows.rules, &r, &number), 0);
		cr_assert_eq(number, i);
	}
	r.cfa_off = 77;
	cr_assert_eq(rows_rules_put(&rows.rules, &r, &again), 0);
	cr_assert_eq(again, 77);
	r.cfa_off = 1 << 20;
	cr_assert_eq(rows_rules_put(&rows.rules, &r, &number), MSG_ROWS_TOO_LARGE);
}

Test(rows, addresses_are_converted_by_their_segment)
{
	struct rows r;
	uint32_t at;
	uint64_t left;

	rows_init(&r);
	rows_segment_add(&r, 0x10002340, 0x2340, 0x100);
	rows_segment_add(&r, 0x20005000, 0x5000, 0x200);
	cr_assert_eq(rows_layout(&r), 0);
	cr_assert_eq(r.base, 0x2000);
	cr_assert_eq(r.span, 0x3200);
	cr_assert(rows_locate(&r, 0x20005010, &at, &left));
	cr_assert_eq(at, 0x3010);
	cr_assert_eq(left, 0x1f0);
	cr_assert_eq(rows_address(&r, at), 0x20005010);
	cr_assert(rows_locate(&r, 0x10002340, &at, &left));
	cr_assert_eq(at, 0x340);
	cr_assert_not(rows_locate(&r, 0x10002440, &at, &left));
	rows_done(&r);
}

Test(rows, span_over_the_limit_is_refused)
{
	struct rows r;

	rows_init(&r);
	cr_assert_eq(rows_layout(&r), MSG_ROWS_NONE);
	rows_segment_add(&r, 0, 0, (uint64_t)UNWIND_MAX_SPAN + 4096);
	cr_assert_eq(rows_layout(&r), MSG_ROWS_TOO_LARGE);
	rows_done(&r);
}

Test(rows, rules_and_distances_of_every_width_come_back)
{
	static const uint32_t step[] = { 1, 254, 255, 256, 65535, 65536, 70000, 1 };
	static const uint32_t number[] = { 1, 223, 224, 7935, 7936, 40000, 255, 2 };
	struct rows_cursor c;
	struct unwind_row_wire row;
	uint32_t at = 0x1000;

	for (int32_t i = 1; i <= 40000; i++)
		rule(i);
	cr_assert_eq(rows_open(&rows, at, 0x1f0000), 0);
	for (unsigned i = 0; i < 8; i++) {
		cr_assert_eq(rows_add(&rows, at, (uint16_t)number[i]), 0);
		at += step[i];
	}
	rows_close(&rows);
	cr_assert_eq(rows_finish(&rows), 0);
	cr_assert_eq(rows.count, 9);
	rows_cursor_init(&c, &rows);
	at = 0x1000;
	for (unsigned i = 0; i < 8; i++) {
		cr_assert(rows_next(&c, &row));
		cr_assert_eq(row.offset, at);
		cr_assert_eq(row.rule, number[i]);
		at += step[i];
	}
}

Test(rows, last_of_two_rows_for_one_place_counts)
{
	FUNCTION(0x100, 0x200, 0x100, 8, 0x110, 16, 0x110, 24, 0x120, 32);
	/* A row equal to the one before it disappears. */
	FUNCTION(0x300, 0x400, 0x300, 8, 0x310, 16, 0x310, 8);
	cr_assert_eq(finish(), 6);
	is_row(1, 0x110, 24);
	is_row(2, 0x120, 32);
	is_row(3, 0x200, -1);
	is_row(4, 0x300, 8);
	is_row(5, 0x400, -1);
}

Test(rows, many_functions_in_any_order_come_out_in_theirs)
{
	uint32_t state = 1;

	/* Each of 8,192 places once: a full cycle of a linear congruential generator. */
	for (unsigned i = 0; i < 8192; i++) {
		state = (state * 1229 + 1) & 8191;
		FUNCTION(state * 64, state * 64 + 64, state * 64, 8 + (int32_t)(state & 1) * 8);
	}
	cr_assert_eq(rows_finish(&rows), 0);
	cr_assert_eq(rows.count, 8193);

	struct rows_cursor c;
	struct unwind_row_wire row;

	rows_cursor_init(&c, &rows);
	for (uint32_t i = 0; i < 8192; i++) {
		cr_assert(rows_next(&c, &row));
		cr_assert_eq(row.offset, i * 64);
		cr_assert_eq(rows.rules.rule[row.rule].cfa_off, 8 + (int32_t)(i & 1) * 8);
	}
}

Test(rows, function_cut_at_its_front_keeps_its_rows)
{
	FUNCTION(0x1000, 0x30000, 0x1000, 8, 0x1001, 16, 0x11000, 24, 0x21000, 32);
	FUNCTION(0x800, 0x11800, 0x800, 40);
	cr_assert_eq(finish(), 4);
	is_row(0, 0x800, 40);
	is_row(1, 0x11800, 24);
	is_row(2, 0x21000, 32);
	is_row(3, 0x30000, -1);
}
