/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "bpf/reasons.h"
#include "common/base/system/clock.h"
#include "tests/memory_tables.h"
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/stream/deferred.h"

#define CODE 0x400000ull
#define STACK 0x7fff00000000ull

static struct tables *t;
static struct deferred_queue *q;
static struct deferred_sample d;
static uint16_t slot;
static bool whole, known;
static unsigned emitted, gathered;
static uint64_t changes;
/* Gathering the mappings of this user's processes takes so much cpu time. */
static uint32_t slow_uid;
static uint64_t slow_ns;
static struct {
	struct sample sample;
	uint64_t frames[16];
} last;

static ssize_t mappings(void *ctx, const struct sample *s, const struct tables_mapping **ret,
			bool *ret_whole)
{
	static struct tables_mapping m;

	gathered++;
	if (s->owner_uid == slow_uid)
		for (const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		     clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns < slow_ns;)
			;
	m = (struct tables_mapping){ .start = CODE, .end = CODE + 0x10000, .slot = slot };
	*ret = &m;
	*ret_whole = whole;
	return known ? 1 : whole ? -1 : 0;
}

static unsigned looked;

static uint64_t get_changes(void *ctx, const struct sample *s)
{
	looked++;
	return changes;
}

static void want(void *ctx, const struct sample *s, const uint64_t *addresses, size_t n)
{
}

static void is_behind(void *ctx, const struct sample *s)
{
}

static unsigned emitted_of[3];

static void emit(void *ctx, const struct sample *s)
{
	size_t n = (size_t)sample_head(s) + s->user_frames;

	emitted++;
	if (s->owner_uid < 3)
		emitted_of[s->owner_uid]++;
	last.sample = *s;
	memcpy(last.frames, sample_words(s), (n < 16 ? n : 16) * sizeof(uint64_t));
}

/* The leaf's stack: n chunks from STACK on. */
static void copy_chunks(uint32_t n)
{
	d.deferred.ranges[DEFERRED_LEAF] = (struct deferred_range){ STACK,
								    STACK + n * DEFERRED_CHUNK };
	d.deferred.chunks = n;
	for (uint32_t i = 0; i < n; i++)
		d.deferred.chunk_at[i] = STACK + i * DEFERRED_CHUNK;
}

static void setup(void)
{
	const struct tables_config c = memory_tables(TABLES_SLAB_BYTES);

	cr_assert_eq(tables_new(&c, &t), 0);
	const struct deferred_config dc = {
		.tables = t, .ceiling = 3 * 136000, .mappings = mappings, .emit = emit
	};
	cr_assert_eq(deferred_new(&dc, &q), 0);
	cr_assert_eq(tables_file_new(t, &slot), 0);
	whole = known = true;
	d.sample = (struct sample){ .time_ns = 1000,
				    .reason = WALK_ROWS_PENDING,
				    .flags = SAMPLE_DEFERRED,
				    .kernel_frames = 1 };
	d.kernel[0] = 0xffffffff81000000ull;
	d.deferred.pc = CODE + 0x10;
	d.deferred.exact = 1;
	d.deferred.regs[UNWIND_REG_RSP] = STACK + 64;
	copy_chunks(1);
	/* The return address below the CFA, RSP + 16. */
	memcpy(d.deferred.stack + 72, &(uint64_t){ CODE + 0x110 }, 8);
}

static void teardown(void)
{
	deferred_free(q);
	tables_free(t);
}

TestSuite(deferred, .init = setup, .fini = teardown);

static void rows_come(void)
{
	const struct unwind_rule rules[] = {
		{ .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 16 },
		{ .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP, .ra = UNWIND_RA_UNDEFINED }
	};
	const struct unwind_row_wire rows[] = { { 0, 0 }, { 0x100, 1 } };

	cr_assert_eq(tables_rows_begin(t, slot, 0, 0x10000, 2, 2), 0);
	cr_assert_eq(tables_rows_rules(t, slot, rules, 2), 0);
	cr_assert_eq(tables_rows_chunk(t, slot, rows, 2), 0);
	cr_assert_eq(tables_rows_end(t, slot), 0);
}

Test(deferred, a_sample_waits_for_rows_and_then_is_whole)
{
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(emitted, 0);
	rows_come();
	deferred_run(q, 3000, false);
	cr_assert_eq(emitted, 1);
	cr_assert(deferred_empty(q));
	cr_assert_eq(last.sample.reason, WALK_COMPLETE);
	cr_assert_eq(last.sample.user_frames, 2);
	cr_assert_eq(last.sample.flags & SAMPLE_DEFERRED, 0);
	cr_assert_eq(last.frames[0], 0xffffffff81000000ull);
	cr_assert_eq(last.frames[2] & SAMPLE_FRAME_OFFSET_MASK, 0x110);
}

static struct {
	struct sample sample;
	uint64_t words[5];
} items;

/* A frame and the entry behind it, at an address in the leaf's frame. */
static void send_items(uint64_t time_ns)
{
	items.sample = d.sample;
	items.sample.time_ns = time_ns;
	items.sample.flags |= SAMPLE_ITEMS;
	items.sample.items = 2;
	items.words[0] = d.kernel[0];
	items.words[1] = (uint64_t)RUNTIME_FRAME << RUNTIME_ITEM_SHIFT | 0x7000;
	items.words[2] = 42;
	items.words[3] = (uint64_t)RUNTIME_ENTRY << RUNTIME_ITEM_SHIFT | (STACK + 68);
	items.words[4] = 0;
	deferred_ahead(q, &items.sample);
	d.sample.items = 2;
}

Test(deferred, interpreted_frames_come_ahead_and_their_entry_is_marked)
{
	send_items(d.sample.time_ns);
	deferred_put(q, &d);
	rows_come();
	deferred_run(q, 3000, false);
	cr_assert_eq(emitted, 1);
	cr_assert_eq(last.sample.items, 2);
	cr_assert_eq(last.sample.reason, WALK_COMPLETE);
	cr_assert_arr_eq(last.frames, items.words, sizeof(items.words));
	cr_assert(last.frames[5] & SAMPLE_FRAME_ENTRY, "the leaf's frame, up to STACK + 80");
	cr_assert_not(last.frames[6] & SAMPLE_FRAME_ENTRY);
	d.sample.items = 0;
}

Test(deferred, interpreted_frames_that_come_behind_their_sample_are_waited_for)
{
	rows_come();
	d.sample.items = 2;
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(emitted, 0);
	send_items(d.sample.time_ns);
	deferred_run(q, 3000, false);
	cr_assert_eq(emitted, 1);
	cr_assert_eq(last.sample.items, 2);
	cr_assert_eq(last.sample.reason, WALK_COMPLETE);
	cr_assert_arr_eq(last.frames, items.words, sizeof(items.words));
	cr_assert(last.frames[5] & SAMPLE_FRAME_ENTRY);
	d.sample.items = 0;
}

Test(deferred, a_sample_whose_interpreted_frames_are_lost_keeps_its_native_ones)
{
	rows_come();
	d.sample.items = 2;
	deferred_put(q, &d);
	deferred_run(q, 1000 + DEFERRED_PATIENCE_NS, false);
	cr_assert_eq(emitted, 0);
	deferred_run(q, 1001 + DEFERRED_PATIENCE_NS, false);
	cr_assert_eq(emitted, 1);
	cr_assert_eq(last.sample.items, 0);
	cr_assert_eq(last.sample.reason, WALK_COMPLETE);
	cr_assert_eq(last.sample.kernel_frames, 1);
	cr_assert_eq(last.sample.user_frames, 2);
	cr_assert_eq(last.frames[1] & SAMPLE_FRAME_OFFSET_MASK, 0x10);
	d.sample.items = 0;
}

Test(deferred, too_many_items_of_a_sample_are_ignored)
{
	rows_come();
	d.sample.items = UINT16_MAX;
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(emitted, 1);
	cr_assert_eq(last.sample.items, 0);
	cr_assert_eq(last.sample.user_frames, 2);
	d.sample.items = 0;
}

Test(deferred, items_of_another_sample_are_not_taken_for_its_own)
{
	send_items(d.sample.time_ns + 1);
	deferred_put(q, &d);
	rows_come();
	deferred_run(q, 3000, true);
	cr_assert_eq(last.sample.items, 0);
	cr_assert_eq(last.sample.user_frames, 2);
	d.sample.items = 0;
}

Test(deferred, a_sample_that_waited_long_enough_goes_with_what_is_known_of_it)
{
	d.sample.reason = WALK_NO_PROCESS;
	deferred_put(q, &d);
	deferred_run(q, 1000 + DEFERRED_PATIENCE_NS, false);
	cr_assert_eq(emitted, 0);
	deferred_run(q, 1001 + DEFERRED_PATIENCE_NS, false);
	cr_assert_eq(emitted, 1);
	cr_assert_eq(last.sample.reason, WALK_ROWS_PENDING);
	cr_assert_eq(last.sample.kernel_frames, 1);
	cr_assert_eq(last.sample.user_frames, 1);
	cr_assert_eq(last.sample.at_slot, slot);
}

Test(deferred, mappings_that_are_on_their_way_are_waited_for)
{
	rows_come();
	known = whole = false;
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(emitted, 0);
	known = whole = true;
	deferred_run(q, 3000, false);
	cr_assert_eq(last.sample.reason, WALK_COMPLETE);
}

Test(deferred, an_unknown_mapping_is_reported_once_all_are_known)
{
	rows_come();
	d.deferred.pc = 0x1234560;
	whole = false;
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(emitted, 0);
	whole = true;
	deferred_run(q, 3000, false);
	cr_assert_eq(last.sample.reason, WALK_NO_MAPPING);
	cr_assert_eq(last.sample.user_frames, 1);
}

Test(deferred, a_walk_past_the_copy_says_so)
{
	rows_come();
	copy_chunks(DEFERRED_CHUNKS);
	d.deferred.regs[UNWIND_REG_RSP] = STACK + DEFERRED_STACK - 8;
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(last.sample.reason, WALK_COPY_END);

	copy_chunks(1);
	d.deferred.ranges[DEFERRED_LEAF].end += DEFERRED_CHUNK;
	d.deferred.regs[UNWIND_REG_RSP] = STACK + 4096;
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(last.sample.reason, WALK_STACK_UNREADABLE);
}

Test(deferred, a_page_that_was_never_written_hides_nothing_behind_it)
{
	rows_come();
	copy_chunks(2);
	d.deferred.chunk_at[1] = STACK + 5 * 4096;
	d.deferred.regs[UNWIND_REG_RSP] = STACK + 5 * 4096;
	memcpy(d.deferred.stack + 4096 + 8, &(uint64_t){ CODE + 0x110 }, 8);
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(last.sample.reason, WALK_COMPLETE);
}

#define TLS 0x7f0000001000ull
#define G 0xc000000000ull
#define OTHER 0xc000100000ull

static void object(enum deferred_object which, uint64_t at, uint32_t word, uint64_t value)
{
	d.deferred.objects[which].at = at;
	d.deferred.objects[which].words[word] = value;
}

/* Like Go's systemstack: its caller is found in the goroutine. */
static void switch_rows(bool by_word)
{
	const struct unwind_rule rules[] = {
		{ .cfa = UNWIND_CFA_GO_SWITCH,
		  .flags = UNWIND_DERIVED | (by_word ? UNWIND_TLS_WORD : 0),
		  .cfa_add = by_word ? 0x7000 : -24,
		  .rbp_reg = 6,
		  .cfa_reg = 23,
		  .ra_reg = 7,
		  .cfa_off = 16,
		  .rbp = UNWIND_RBP_CFA,
		  .rbp_off = -16 },
		{ .cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP, .ra = UNWIND_RA_UNDEFINED }
	};
	const struct unwind_row_wire rows[] = { { 0, 0 }, { 0x100, 1 } };

	cr_assert_eq(tables_rows_begin(t, slot, 0, 0x10000, 2, 2), 0);
	cr_assert_eq(tables_rows_rules(t, slot, rules, 2), 0);
	cr_assert_eq(tables_rows_chunk(t, slot, rows, 2), 0);
	cr_assert_eq(tables_rows_end(t, slot), 0);
	d.deferred.tls = TLS;
	d.deferred.g_below = 24;
	object(DEFERRED_TLS, TLS - 24, 0, G);
	object(DEFERRED_G_NOW, G, 6, G + 0x1000);
	object(DEFERRED_M, G + 0x1000, 23, G + 0x2000);
	object(DEFERRED_G_OF_USER, G + 0x2000, 7, OTHER + 0x200);
	copy_chunks(2);
	d.deferred.chunk_at[1] = OTHER;
	memcpy(d.deferred.stack + 4096 + 0x208, &(uint64_t){ CODE + 0x110 }, 8);
}

Test(deferred, a_stack_that_was_left_for_another_is_also_walked)
{
	/* The word with the place of a library's g is not copied: g was found without it. */
	for (int by_word = 0; by_word < 2; by_word++) {
		teardown();
		setup();
		switch_rows(by_word);
		deferred_put(q, &d);
		deferred_run(q, 2000, false);
		cr_assert_eq(last.sample.reason, WALK_COMPLETE);
		cr_assert_eq(last.sample.user_frames, 2);
		cr_assert_eq(last.frames[2] & SAMPLE_FRAME_OFFSET_MASK, 0x110);
	}
}

Test(deferred, words_that_did_not_travel_are_unreadable)
{
	for (unsigned i = 0; i < 4; i++) {
		const enum deferred_object which[] = { DEFERRED_TLS, DEFERRED_G_NOW, DEFERRED_M,
						       DEFERRED_G_OF_USER };

		teardown();
		setup();
		switch_rows(false);
		d.deferred.objects[which[i]].at = 0;
		deferred_put(q, &d);
		deferred_run(q, 2000, false);
		cr_assert_eq(last.sample.reason, WALK_STACK_UNREADABLE);
		cr_assert_eq(last.sample.user_frames, 1);
	}
}

Test(deferred, wrong_bounds_in_a_copy_are_clamped)
{
	rows_come();
	d.deferred.chunks = UINT32_MAX;
	for (int i = 0; i < DEFERRED_CHUNKS; i++)
		d.deferred.chunk_at[i] = UINT64_MAX - 8;
	d.deferred.regs[UNWIND_REG_RSP] = UINT64_MAX - 16;
	for (int i = 0; i < DEFERRED_OBJECTS; i++)
		d.deferred.objects[i].at = UINT64_MAX - 8;
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(emitted, 1);
	cr_assert_neq(last.sample.reason, WALK_COMPLETE);
}

Test(deferred, within_execve_there_may_be_no_user_part)
{
	rows_come();
	d.sample.flags |= SAMPLE_IN_EXEC;
	d.deferred.regs[UNWIND_REG_RSP] = STACK + 4096;
	deferred_put(q, &d);
	deferred_run(q, 2000, false);
	cr_assert_eq(last.sample.reason, WALK_COMPLETE);
	cr_assert_eq(last.sample.user_frames, 0);
	cr_assert_eq(last.sample.kernel_frames, 1);
}

Test(deferred, at_the_ceiling_the_oldest_is_sent_as_it_is)
{
	copy_chunks(DEFERRED_CHUNKS);
	for (int i = 0; i < 5; i++) {
		d.sample.tid = (uint32_t)i;
		for (size_t at = 0; at < sizeof(d.deferred.stack); at += DEFERRED_CHUNK)
			d.deferred.stack[at + DEFERRED_CHUNK - 1] = (unsigned char)(i + 1);
		deferred_put(q, &d);
	}
	cr_assert_eq(emitted, 2);
	cr_assert_eq(last.sample.tid, 1);
}

Test(deferred, stacks_that_are_the_same_take_the_room_of_one)
{
	copy_chunks(DEFERRED_CHUNKS);
	for (int i = 0; i < 50; i++)
		deferred_put(q, &d);
	cr_assert_eq(emitted, 0);
	deferred_run(q, 2000, true);
	cr_assert_eq(emitted, 50);
}

Test(deferred, at_the_end_everything_goes)
{
	deferred_put(q, &d);
	deferred_put(q, &d);
	deferred_run(q, 2000, true);
	cr_assert_eq(emitted, 2);
	cr_assert(deferred_empty(q));
}

Test(deferred, the_owner_with_most_samples_sends_its_oldest)
{
	struct owners *o;

	cr_assert_eq(owners_new(&o), 0);
	deferred_keep_owners(q, o);
	known = whole = false;
	copy_chunks(DEFERRED_CHUNKS);
	d.sample.owner_uid = 1;
	d.sample.pid = 1;
	/* All words differ, so that no two samples share pieces. */
	for (uint64_t n = 0; n < 10; n++) {
		d.sample.owner_uid = n == 0 ? 1 : 2;
		d.sample.time_ns = 1000 + n;
		if (n == 0)
			copy_chunks(8);
		else
			copy_chunks(DEFERRED_CHUNKS);
		for (size_t k = 0; k < DEFERRED_STACK; k += DEFERRED_CHUNK)
			memcpy(d.deferred.stack + k + 256, &n, sizeof(n));
		deferred_put(q, &d);
	}
	cr_assert_eq(emitted, 7);
	cr_assert_eq(last.sample.owner_uid, 2);
	struct owner *small = owners_get(o, (struct owner_key){ .uid = 1 });
	cr_assert_gt(small->held[OWNER_STACKS], 8 * DEFERRED_CHUNK - 4096);
	deferred_run(q, 5000, true);
	cr_assert_eq(emitted, 10);
	cr_assert_eq(small->held[OWNER_STACKS], 0);
	owner_put(o, small);
	deferred_keep_owners(q, NULL);
	owners_free(o);
}

#define TICK 50000000ull

/* A queue that hears of changes of mappings, as prof-bpf's. */
static void hear_changes(size_t ceiling)
{
	const struct deferred_config dc = { .tables = t,
					    .ceiling = ceiling,
					    .mappings = mappings,
					    .changes = get_changes,
					    .wants = want,
					    .is_behind = is_behind,
					    .emit = emit };

	deferred_free(q);
	cr_assert_eq(deferred_new(&dc, &q), 0);
}

/* Runs the queue for one second from `now` on. Returns the time of the next tick. */
static uint64_t run_a_second(uint64_t now)
{
	for (unsigned n = 0; n < 20; n++, now += TICK)
		deferred_run(q, now, false);
	return now;
}

Test(deferred, a_sample_whose_rows_are_pending_is_not_walked_again_and_again)
{
	hear_changes(1 << 20);
	deferred_put(q, &d);
	uint64_t now = run_a_second(TICK);
	cr_assert_leq(gathered, 5);
	for (unsigned n = 0; n < 6; n++)
		now = run_a_second(now);
	cr_assert_leq(gathered, 12);
	rows_come();
	deferred_run(q, now, false);
	cr_assert_eq(emitted, 1, "it is walked in the tick after its rows came");
	cr_assert_eq(last.sample.reason, WALK_COMPLETE);
}

Test(deferred, a_sample_is_walked_as_soon_as_its_file_gets_no_rows)
{
	hear_changes(1 << 20);
	deferred_put(q, &d);
	deferred_run(q, TICK, false);
	tables_file_none(t, slot);
	deferred_run(q, TICK + 1, false);
	cr_assert_eq(emitted, 1);
	cr_assert_neq(last.sample.reason, WALK_ROWS_PENDING);
}

Test(deferred, a_sample_without_a_mapping_is_walked_when_the_mappings_change)
{
	for (unsigned none = 0; none < 2; none++) {
		hear_changes(1 << 20);
		gathered = emitted = 0;
		d.deferred.pc = 0x1234560;
		whole = false;
		known = !none;
		deferred_put(q, &d);
		uint64_t now = run_a_second(TICK);
		cr_assert_leq(gathered, 5);
		cr_assert_eq(emitted, 0);
		known = whole = true;
		changes++;
		deferred_run(q, now, false);
		cr_assert_eq(emitted, 1);
		cr_assert_eq(last.sample.reason, WALK_NO_MAPPING);
	}
}

Test(deferred, a_sample_whose_file_has_no_slot_is_walked_again_in_the_next_tick)
{
	const uint16_t real = slot;

	hear_changes(1 << 20);
	rows_come();
	slot = TABLES_UNASKED;
	deferred_put(q, &d);
	deferred_run(q, TICK, false);
	cr_assert_eq(emitted, 0);
	slot = real;
	deferred_run(q, TICK + 1, false);
	cr_assert_eq(emitted, 1);
	cr_assert_eq(last.sample.reason, WALK_COMPLETE);
}

Test(deferred, a_sample_that_lacks_items_is_not_walked_until_some_come)
{
	hear_changes(1 << 20);
	rows_come();
	d.sample.items = 2;
	deferred_put(q, &d);
	const uint64_t now = run_a_second(TICK);
	cr_assert_eq(gathered, 0);
	send_items(d.sample.time_ns);
	deferred_run(q, now, false);
	cr_assert_eq(emitted, 1);
	d.sample.items = 0;
}

Test(deferred, mappings_that_were_refused_are_not_gathered_again_at_once)
{
	hear_changes(1 << 20);
	rows_come();
	known = false; /* and whole: an error */
	deferred_put(q, &d);
	for (uint64_t now = TICK; now < TICK + 1000000; now += 1000)
		deferred_run(q, now, false);
	cr_assert_eq(gathered, 1);
	known = true;
	deferred_run(q, 2 * TICK, false);
	cr_assert_eq(emitted, 1);
}

Test(deferred, many_samples_that_wait_are_not_looked_at_in_each_tick)
{
	hear_changes(64 << 20);
	known = whole = false;
	for (unsigned n = 0; n < 1000; n++)
		deferred_put(q, &d);
	/* The first look walks all. Then they wait for mappings. */
	deferred_run(q, TICK, false);
	looked = 0;
	for (unsigned n = 0; n < 1000; n++)
		deferred_run(q, TICK + n * 20000ull, false);
	cr_assert(looked > 500 && looked < 4000, "%u", looked);
	known = whole = true;
	rows_come();
	changes++;
	deferred_run(q, 2 * TICK, false);
	cr_assert_eq(emitted, 1000);
}

/* Puts n samples of this user. */
static void put_of(uint32_t uid, unsigned n, uint64_t now)
{
	d.sample.owner_uid = uid;
	d.sample.time_ns = now;
	while (n-- > 0)
		deferred_put(q, &d);
}

static struct owners *with_owners(void)
{
	struct owners *o;

	hear_changes(64 << 20);
	cr_assert_eq(owners_new(&o), 0);
	deferred_keep_owners(q, o);
	memset(emitted_of, 0, sizeof(emitted_of));
	return o;
}

#define START 100000000000ull /* so that unused time has accumulated */

Test(deferred, hundreds_of_samples_of_one_owner_do_not_delay_those_of_another)
{
	struct owners *o = with_owners();

	slow_uid = 1;
	slow_ns = 1000000;
	rows_come();
	put_of(1, 300, START);
	put_of(2, 3, START);
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	deferred_run(q, START + TICK, false);
	cr_assert_lt(clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns, 30000000, "one tick is bounded");
	cr_assert_eq(emitted_of[2], 3);
	cr_assert_gt(emitted_of[1], 0);
	cr_assert_lt(emitted_of[1], 20);
	deferred_free(q);
	q = NULL;
	owners_free(o);
}

Test(deferred, an_owner_that_has_spent_its_part_waits_and_others_do_not)
{
	struct owners *o = with_owners();
	uint64_t now = START;

	slow_uid = 1;
	slow_ns = 10000000;
	put_of(1, 300, now);
	/* It spends what it has saved, and then a tenth of the time. */
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned n = 0; n < 7; n++)
		now = run_a_second(now + 1);
	const uint64_t spent_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	cr_assert_lt(spent_ns, 2000000000);
	struct owner *slow = owners_get(o, (struct owner_key){ .uid = 1 });
	cr_assert_gt(owner_spent(slow, OWNER_WALKS_CPU, now), spent_ns / 2);
	put_of(2, 3, now);
	rows_come();
	/* One walk of the slow owner may take a whole tick. */
	for (unsigned n = 0; n < 3; n++)
		deferred_run(q, now += TICK, false);
	cr_assert_eq(emitted_of[2], 3);
	/* Its samples go in the end, and cost little if it is far above its part. */
	now += DEFERRED_PATIENCE_NS + TICK;
	began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	deferred_run(q, now, true);
	cr_assert_lt(clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns, 2500000000);
	cr_assert_eq(emitted_of[1], 300);
	cr_assert_gt(slow->refused[OWNER_WALKS_CPU], 0);
	cr_assert(deferred_empty(q));
	owner_put(o, slow);
	deferred_free(q);
	q = NULL;
	owners_free(o);
}

Test(deferred, owners_take_turns_across_ticks)
{
	struct owners *o = with_owners();

	slow_uid = 0;
	slow_ns = 11000000;
	d.sample.owner_container = 0;
	rows_come();
	/* Each walk takes the time of a whole tick. */
	put_of(0, 4, START);
	deferred_run(q, START + TICK, false);
	cr_assert_eq(emitted_of[0], 1);
	put_of(1, 1, START);
	put_of(2, 1, START);
	deferred_run(q, START + 2 * TICK, false);
	cr_assert_eq(emitted_of[1], 1);
	cr_assert_eq(emitted_of[2], 1);
	cr_assert_eq(emitted_of[0], 2);
	deferred_free(q);
	q = NULL;
	owners_free(o);
}
