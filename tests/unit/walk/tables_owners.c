/* SPDX-License-Identifier: Apache-2.0 */
/* Charges of owners in the tables, and which owners are evicted when room is scarce. */
#include "tests/unit/tables_fixture.h"

#define FEW_OWNERS 4

static uint64_t held[FEW_OWNERS][2], refused[FEW_OWNERS][2];

static void ledger_hold(void *ctx, uint32_t owner, enum tables_resource what, int64_t n)
{
	held[owner][what] += (uint64_t)n;
}

static uint64_t ledger_held(void *ctx, uint32_t owner, enum tables_resource what)
{
	return held[owner][what];
}

/* Every owner may have as much as the others, and the rest that they leave. */
static uint64_t ledger_share(void *ctx, uint32_t taker, enum tables_resource what, uint64_t all)
{
	uint64_t share = 0;

	for (;;) {
		uint64_t left = all, among = 0;

		for (uint32_t i = 0; i < FEW_OWNERS; i++) {
			if (i == taker || held[i][what] > share)
				among++;
			else
				left -= held[i][what] < left ? held[i][what] : left;
		}
		const uint64_t next = among ? left / among : all;

		if (!among || next <= share)
			return next > share ? next : share;
		share = next;
	}
}

static void ledger_refuse(void *ctx, uint32_t owner, enum tables_resource what)
{
	refused[owner][what]++;
}

static const struct tables_ledger ledger = {
	.hold = ledger_hold, .held = ledger_held, .share = ledger_share, .refuse = ledger_refuse
};

static void owners_setup(void)
{
	setup();
	tables_keep_ledger(t, &ledger);
	memset(held, 0, sizeof(held));
	memset(refused, 0, sizeof(refused));
}

TestSuite(tables_owners, .init = owners_setup, .fini = teardown);

/* A file of an owner, with `rules` rules from number `from` on that no other file has. Returns its
 * slot; 0: there was no room. */
static uint16_t add_for(uint32_t owner, uint32_t rows, uint32_t rules, int32_t from)
{
	uint16_t slot;

	cr_assert_eq(tables_file_new(t, &slot), 0);
	tables_file_charge(t, slot, owner);
	if (tables_rows_begin(t, slot, 0, rows * 16ull, rows, rules)) {
		tables_file_full(t, slot);
		return 0;
	}
	for (uint32_t i = 0; i < rules; i++) {
		struct unwind_rule r = rule(8 * (from + (int32_t)i));

		if (tables_rows_rules(t, slot, &r, 1)) {
			tables_file_full(t, slot);
			return 0;
		}
	}
	struct unwind_row_wire *w = calloc(rows, sizeof(*w));
	for (uint32_t i = 0; i < rows; i++)
		w[i] = (struct unwind_row_wire){ .offset = i * 16, .rule = i % rules };
	int r = tables_rows_chunk(t, slot, w, rows);
	free(w);
	if (!r)
		r = tables_rows_end(t, slot);
	if (r)
		tables_file_full(t, slot);
	return r ? 0 : slot;
}

Test(tables_owners, the_owner_with_most_rules_leaves_some_and_gives_up_first)
{
	uint16_t slot[400];
	unsigned n = 0;
	const uint16_t small = add_for(2, 100, 100, 100000);

	while (n < 400 && (slot[n] = add_for(1, 100, 100, (int32_t)n * 100 + 1)) != 0) {
		tables_file_touch(t, slot[n], 2 + n);
		n++;
	}
	cr_assert_gt(n, 140);
	cr_assert_lt(n, 160);
	cr_assert(held[1][TABLES_RULES] == n * 100);
	cr_assert_gt(refused[1][TABLES_RULES], 0);
	/* Another owner finds room at once, and the room that it used is freed again. */
	cr_assert_neq(add_for(2, 100, 600, 200000), 0);
	cr_assert_eq(refused[2][TABLES_RULES], 0);
	tables_tick(t, 3000000000ull);
	tables_tick(t, 6000000000ull);
	tables_tick(t, 9000000000ull);
	cr_assert_eq(tables_file_state(t, small), TABLES_FILE_READY);
	cr_assert_neq(tables_file_state(t, slot[0]), TABLES_FILE_READY, "sampled longest ago");
	cr_assert_eq(tables_file_state(t, slot[n - 1]), TABLES_FILE_READY);
	cr_assert_neq(add_for(3, 100, 900, 300000), 0);
}

/* One owner has more than its share, and another takes at once all that it frees. */
Test(tables_owners, a_quick_owner_leaves_room_for_a_small_one)
{
	int32_t from = 1;

	while (add_for(1, 100, 100, from))
		from += 100;
	for (unsigned round = 1; round <= 4; round++) {
		while (add_for(3, 100, 100, from))
			from += 100;
		cr_assert_neq(add_for(2, 100, 60, 200000 + 60 * (int32_t)round), 0);
		tables_tick(t, round * 3000000000ull);
	}
	cr_assert_eq(refused[2][TABLES_RULES], 0);
}

/* Owners that hold little may use what the largest leaves free. So an owner that comes later finds
 * rules only if evicted ones can be used at once. */
Test(tables_owners, a_small_owner_does_not_wait_until_evicted_rules_are_old)
{
	const struct tables_config c = kernel_tables(3 * TABLES_SLAB_BYTES);
	int32_t from = 1;

	tables_free(t);
	cr_assert_eq(tables_new(&c, &t), 0);
	tables_keep_ledger(t, &ledger);
	tables_tick(t, 1);
	while (add_for(1, 100, 100, from))
		from += 100;
	cr_assert_neq(add_for(3, 100, 900, 200000), 0);
	cr_assert_neq(add_for(2, 100, 600, 300000), 0);
	cr_assert_eq(refused[2][TABLES_RULES], 0);
	tables_tick(t, 2);
	cr_assert_neq(add_for(0, 100, 900, 400000), 0);
	cr_assert_eq(refused[0][TABLES_RULES], 0);
	close(c.slabs_fd);
}

/* Rows were evicted, and another owner, who holds nothing, asks for room first. */
Test(tables_owners, evicted_rows_leave_the_rest_to_others)
{
	uint16_t first = 0, slot;
	int32_t from = 1;

	for (; (slot = add_for(1, 100, 100, from)) != 0; from += 100) {
		tables_file_touch(t, slot, 2 + (uint64_t)from);
		first = first ? first : slot;
	}
	cr_assert_neq(add_for(2, 100, 600, 200000), 0);
	tables_tick(t, 3000000000ull);
	cr_assert_eq(tables_file_state(t, first), TABLES_FILE_EVICTED);
	tables_file_charge(t, first, 3);
	tables_file_pending(t, first);
	cr_assert_eq(tables_rows_begin(t, first, 0, 1600, 100, 100), TABLES_FULL);
	cr_assert_neq(add_for(3, 100, 100, 300000), 0, "a new file finds room");
}

Test(tables_owners, held_words_and_rules_are_given_back)
{
	const uint16_t a = add_for(1, 5000, 10, 1), b = add_for(2, 5000, 10, 1);

	cr_assert_gt(held[1][TABLES_WORDS], 5000);
	cr_assert_eq(held[1][TABLES_WORDS], held[2][TABLES_WORDS]);
	cr_assert_eq(held[1][TABLES_RULES], 10);
	cr_assert_eq(held[2][TABLES_RULES], 0, "shared");
	tables_file_charge(t, b, 3);
	cr_assert_eq(held[2][TABLES_WORDS], 0);
	tables_file_free(t, a);
	tables_file_none(t, b);
	cr_assert_gt(held[1][TABLES_WORDS], 5000, "until somebody else can use it");
	tables_tick(t, 3000000000ull);
	tables_tick(t, 6000000000ull);
	for (unsigned i = 0; i < FEW_OWNERS; i++) {
		cr_assert_eq(held[i][TABLES_WORDS], 0);
		cr_assert_eq(held[i][TABLES_RULES], 0);
	}
}

Test(tables_owners, the_owner_with_most_words_leaves_some_and_gives_up_first)
{
	uint16_t slot[100], other;
	unsigned n = 0;
	uint64_t now = 2;

	while (n < 100 && (slot[n] = add_for(1, 0x8000, 4, 1)) != 0) {
		/* Much used. */
		for (unsigned i = 0; i < 100; i++)
			tables_file_touch(t, slot[n], ++now);
		n++;
	}
	cr_assert_lt(n, 100);
	cr_assert_gt(refused[1][TABLES_WORDS], 0);
	/* Some room is left for others, whatever the value of their files. */
	other = add_for(2, 0x4000, 4, 1);
	cr_assert_neq(other, 0);
	tables_tick(t, 1000000000ull);
	tables_tick(t, 4000000000ull);
	tables_tick(t, 7000000000ull);
	cr_assert_neq(add_for(2, 0x4000, 4, 1), 0);
	cr_assert_eq(tables_file_state(t, other), TABLES_FILE_READY);
	/* More than is left: the largest owner gives back as much as is needed. */
	if (!add_for(2, 0x30000, 4, 1)) {
		tables_tick(t, 8000000000ull);
		tables_tick(t, 11000000000ull);
		cr_assert_neq(add_for(2, 0x30000, 4, 1), 0);
	}
	cr_assert_eq(tables_file_state(t, other), TABLES_FILE_READY);
}

Test(tables_owners, rows_of_a_small_owner_may_use_room_kept_for_mappings)
{
	struct tables_mapping *m = calloc(TABLES_MAX_MAPPINGS, sizeof(*m));
	uint32_t generation, pid = 1;
	size_t n = TABLES_MAX_MAPPINGS / 8;

	cr_assert_not_null(m);
	for (size_t i = 0; i < TABLES_MAX_MAPPINGS; i++)
		m[i] = (struct tables_mapping){ 0x1000 + i * 0x2000, 0x2000 + i * 0x2000, 0, 0 };
	/* Two owners fill the room for mappings, except for a few words. */
	while (n) {
		tables_charge_mappings(t, pid % 2);
		if (tables_process_set(t, pid, 1, 0, m, n, true, &generation))
			n /= 2;
		pid++;
	}
	free(m);
	cr_assert_gt(pid, 16);
	cr_assert_eq(add_for(0, 0x1000, 4, 1), 0, "they leave room for others");
	cr_assert_neq(add_for(2, 64, 4, 1), 0, "an owner that holds nothing gets it");
	cr_assert_eq(refused[2][TABLES_WORDS], 0);
}

Test(tables_owners, refusals_between_two_ticks_sort_the_files_once)
{
	struct tables_figures before, after;
	uint64_t now = 2;
	uint16_t slot;

	while ((slot = add_for(1, 0x8000, 4, 1)) != 0)
		for (unsigned i = 0; i < 100; i++)
			tables_file_touch(t, slot, ++now);
	tables_tick(t, 2000);
	tables_figures(t, &before);
	for (unsigned i = 0; i < 50; i++)
		cr_assert_eq(add_for(1, 0x8000, 4, 1), 0);
	tables_figures(t, &after);
	cr_assert_eq(after.evictions, before.evictions);
	cr_assert_eq(after.sorts, before.sorts + 1);
	tables_tick(t, 3000);
	cr_assert_eq(add_for(1, 0x8000, 4, 1), 0);
	tables_figures(t, &after);
	cr_assert_eq(after.sorts, before.sorts + 2);
}
