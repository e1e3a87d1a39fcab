/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "common/base/system/clock.h"
#include "tools/prof-symd/owners/naming_turns.h"
#include "tools/prof-symd/stream/namer_internal.h"

#define SECOND 1000000000ull

Test(naming_turns, an_allowance_is_used_up_and_earned_again)
{
	struct naming_turns t = { 0 };

	cr_expect_not(naming_turns_over(&t, 7, 1, SECOND));
	naming_turns_spend(&t, 7, NAMING_TURNS_BURST_NS, SECOND);
	cr_expect_not(naming_turns_over(&t, 7, 1, SECOND));
	naming_turns_spend(&t, 7, 100000000, SECOND);
	cr_expect(naming_turns_over(&t, 7, 1, SECOND));
	cr_expect_not(naming_turns_over(&t, 8, 1, SECOND));
	naming_turns_spend(&t, 8, NAMING_TURNS_BURST_NS / 2, SECOND);
	cr_expect_not(naming_turns_over(&t, 8, 2, SECOND));
	cr_expect(naming_turns_over(&t, 8, 3, SECOND));
	cr_expect(naming_turns_over(&t, 7, 1, 3 * SECOND / 2));
	cr_expect_not(naming_turns_over(&t, 7, 1, 2 * SECOND));
	cr_expect_eq(naming_turns_spent(&t, 7, 60 * SECOND), 0);
	naming_turns_spend(&t, 9, 8 * SECOND, SECOND);
	cr_expect_eq(naming_turns_spent(&t, 9, SECOND + NAMING_TURNS_HALF_NS), 4 * SECOND);
	cr_expect_eq(naming_turns_spent(&t, 9, SECOND + 3 * NAMING_TURNS_HALF_NS), SECOND);
	cr_expect_eq(naming_turns_spent(&t, 9, SECOND + NAMING_TURNS_HALF_NS / 2), 6 * SECOND);
}

Test(naming_turns, others_are_those_with_samples_in_the_queue)
{
	struct naming_turns t = { 0 };

	naming_turns_enter(&t, 7, 1);
	naming_turns_enter(&t, 7, 1);
	cr_expect_not(naming_turns_others(&t, 7));
	cr_expect(naming_turns_others(&t, 8));
	naming_turns_enter(&t, 8, 1);
	cr_expect(naming_turns_others(&t, 7));
	naming_turns_leave(&t, 8);
	cr_expect_not(naming_turns_others(&t, 7));
}

Test(naming_turns, owners_that_spent_less_pause_for_less)
{
	struct naming_turns t = { 0 };

	cr_expect_eq(naming_turns_rest_part(&t, 7, 8, SECOND), 0);
	naming_turns_spend(&t, 7, SECOND, SECOND);
	cr_expect_eq(naming_turns_rest_part(&t, 7, 8, SECOND), 8);
	cr_expect_eq(naming_turns_rest_part(&t, 8, 8, SECOND), 0);
	naming_turns_spend(&t, 8, SECOND / 2, SECOND);
	cr_expect_eq(naming_turns_rest_part(&t, 8, 8, SECOND), 4);
	cr_expect_eq(naming_turns_paused_until(&t, 8), 0);
	naming_turns_pause(&t, 8, SECOND / 4, SECOND);
	naming_turns_pause(&t, 8, SECOND / 4, SECOND);
	cr_expect_eq(naming_turns_paused_until(&t, 8), 3 * SECOND / 2);
	naming_turns_pause(&t, 8, 9 * SECOND, SECOND);
	cr_expect_eq(naming_turns_paused_until(&t, 8), SECOND + NAMING_TURNS_PAUSE_NS);
	cr_expect_eq(naming_turns_paused_until(&t, 7), 0);
}

Test(naming_turns, the_users_that_spent_least_are_forgotten_first)
{
	struct naming_turns t = { 0 };

	naming_turns_spend(&t, 1, SECOND, SECOND);
	for (uint64_t owner = 2; owner < 3 * NAMING_TURNS_OWNERS; owner++)
		naming_turns_spend(&t, owner, 1000, SECOND);
	cr_expect(naming_turns_over(&t, 1, 1, SECOND));
}

Test(naming_turns, owners_without_a_place_are_one)
{
	struct naming_turns t = { 0 };

	for (uint64_t owner = 1; owner <= NAMING_TURNS_OWNERS + 2; owner++)
		naming_turns_enter(&t, owner, SECOND);
	cr_expect_eq(t.queued, NAMING_TURNS_OWNERS + 2);
	cr_expect_eq(naming_turns_key(&t, NAMING_TURNS_OWNERS), NAMING_TURNS_OWNERS);
	cr_expect_eq(naming_turns_key(&t, NAMING_TURNS_OWNERS + 1), NAMING_TURNS_NOBODY);
	naming_turns_spend(&t, NAMING_TURNS_OWNERS + 1, SECOND, SECOND);
	cr_expect(naming_turns_over(&t, NAMING_TURNS_OWNERS + 2, 1, SECOND),
		  "they share an allowance");
	cr_expect_not(naming_turns_over(&t, 5, 1, SECOND));
	naming_turns_leave(&t, 5);
	naming_turns_spend(&t, NAMING_TURNS_OWNERS + 2, 1,
			   SECOND); /* has a place now, and its sample has not */
	cr_expect_not(naming_turns_over(&t, NAMING_TURNS_OWNERS + 2, 1, SECOND));
	for (uint64_t owner = 1; owner <= NAMING_TURNS_OWNERS + 2; owner++)
		if (owner != 5)
			naming_turns_leave(&t, owner);
	cr_expect_eq(t.queued, 0);
	cr_expect_eq(t.owners, 0);
}

/* A named stream of two owners. The frame of each sample is in a file of its own, which is answered
 * on the test's command. */
struct bench {
	struct filestore files;
	struct stream_out out;
	struct stream_in in;
	struct namer *namer;
	uint64_t requests[64];
	unsigned asked;
};

static uint64_t slow;

static void note_slow(uint64_t owner)
{
	slow = owner;
}

static int to_in(void *ctx, struct span batch)
{
	return stream_feed(&((struct bench *)ctx)->in, batch);
}

static int ask(void *ctx, const struct filestore_request *rq)
{
	struct bench *b = ctx;

	b->requests[b->asked++ % 64] = rq->id;
	return 0;
}

static void take(struct bench *b, struct msg m)
{
	cr_assert_eq(namer_take(b->namer, &m, SECOND), 0);
}

static struct bench *bench_new(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	cr_assert(b);
	filestore_init(&b->files, FILESTORE_BUDGET, FILESTORE_BUDGET, ask, b);
	stream_in_init(&b->in);
	stream_out_init(&b->out, 65536, to_in, b);
	cr_assert_eq(namer_new(&NAMER_LIMITS, &b->files, &b->out, &b->namer), 0);
	namer_take_turns(b->namer, 60 * SECOND, note_slow);
	take(b, (struct msg){ .id = MSG_HELLO, .hello = { .schema = MSG_SCHEMA } });
	for (uint64_t owner = 1; owner <= 2; owner++) {
		take(b, (struct msg){ .id = MSG_PROCESS,
				      .process = { .id = owner, .pid = owner, .owner = owner } });
		take(b, (struct msg){ .id = MSG_THREAD,
				      .thread = { .id = owner, .process = owner, .tid = owner } });
	}
	return b;
}

static void bench_free(struct bench *b)
{
	namer_free(b->namer);
	stream_in_done(&b->in);
	stream_out_done(&b->out);
	free(b);
}

static void sample(struct bench *b, uint64_t id, uint64_t owner)
{
	take(b, (struct msg){ .id = MSG_FILE,
			      .file = { .id = id, .path = STR_LIT("/bin/x"), .uid = owner } });
	take(b,
	     (struct msg){
		     .id = MSG_FRAME,
		     .frame = { .id = id, .kind = MSG_FRAME_NATIVE, .file = id, .offset = 0x10 } });
	take(b, (struct msg){ .id = MSG_STACK, .stack = { .id = id, .frames = { &id, 1 } } });
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = id, .thread = owner } });
}

static void answer_all(struct bench *b)
{
	for (unsigned i = 0; i < b->asked; i++)
		filestore_answer(&b->files, b->requests[i % 64], -1, 2 * SECOND);
}

static uint64_t sent(const struct bench *b)
{
	return namer_counts(b->namer).samples;
}

Test(namer, an_owner_waiting_for_files_delays_no_other)
{
	struct bench *b = bench_new();

	sample(b, 10, 1);
	cr_assert_eq(namer_run(b->namer, SECOND), NAMER_WAIT);
	sample(b, 11, 2);
	filestore_answer(&b->files, b->requests[1], -1, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND + 1000000), NAMER_WAIT);
	cr_expect_eq(sent(b), 0, "a moment of waiting harms no owner");
	cr_assert_eq(namer_run(b->namer, SECOND + 2 * NAMING_TURNS_BURST_NS), 0);
	cr_expect_eq(sent(b), 1, "the other's");
	answer_all(b);
	cr_assert_eq(namer_run(b->namer, 2 * SECOND), 0);
	cr_expect_eq(sent(b), 2);
	bench_free(b);
}

Test(namer, a_single_owner_waits_for_nobody)
{
	struct bench *b = bench_new();

	naming_turns_spend(&b->namer->turns, 1, SECOND, SECOND);
	sample(b, 10, 1);
	filestore_answer(&b->files, b->requests[0], -1, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(sent(b), 1);
	bench_free(b);
}

Test(namer, a_process_ends_behind_its_samples)
{
	struct bench *b = bench_new();
	struct msg m;
	bool sampled = false;

	naming_turns_spend(&b->namer->turns, 1, SECOND, SECOND);
	sample(b, 10, 1);
	take(b, (struct msg){ .id = MSG_PROCESS_END, .process_end = { .id = 1 } });
	sample(b, 11, 2);
	filestore_answer(&b->files, b->requests[1], -1, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(sent(b), 1);
	answer_all(b);
	cr_assert_eq(namer_run(b->namer, 2 * SECOND), 0);
	cr_expect_eq(sent(b), 2);
	cr_assert_eq(stream_flush(&b->out), 0);
	for (unsigned samples = 0; stream_next(&b->in, &m) == 0;) {
		samples += m.id == MSG_SAMPLE;
		if (m.id == MSG_PROCESS_END)
			sampled = samples == 2;
	}
	cr_expect(sampled);
	bench_free(b);
}

Test(namer, events_put_aside_end_soon_after_the_stream)
{
	struct bench *b = bench_new();

	naming_turns_spend(&b->namer->turns, 1, 100 * SECOND, SECOND);
	sample(b, 10, 1);
	sample(b, 11, 2);
	filestore_answer(&b->files, b->requests[1], -1, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(sent(b), 1);
	take(
		b, (struct msg) { .id = MSG_END });
	cr_assert_eq(namer_run(b->namer, SECOND), NAMER_WAIT);
	cr_expect_eq(sent(b), 1);
	slow = 0;
	cr_assert_eq(namer_run(b->namer, SECOND + NAMER_LATE_NS), 0);
	cr_expect_eq(sent(b), 2);
	cr_expect(namer_ended(b->namer));
	cr_expect_eq(namer_counts(b->namer).late, 0, "its file is missing");
	bench_free(b);
}

Test(namer, only_resting_owners_are_skipped)
{
	struct bench *b = bench_new();
	struct naming_turns *t = &b->namer->turns;

	/* Both are over their allowance, and a third owner has samples: both are put aside. */
	naming_turns_spend(t, 1, 100 * SECOND, SECOND);
	naming_turns_spend(t, 2, 100 * SECOND, SECOND);
	naming_turns_enter(t, 3, SECOND);
	sample(b, 10, 1);
	sample(b, 11, 2);
	cr_assert_geq(namer_run(b->namer, SECOND), 0);
	cr_assert_eq(sent(b), 0);
	answer_all(b);
	naming_turns_leave(t, 3);
	naming_turns_rest(t, 1, clock_mono_ns() + 60 * SECOND, SECOND);
	naming_turns_rest(t, 2, 0, SECOND);
	b->namer->round.next_ns = 0;
	cr_assert_geq(namer_run(b->namer, 2 * SECOND), 0);
	cr_expect_eq(sent(b), 1, "the other's");
	cr_expect_gt(b->namer->round.next_ns, clock_mono_ns(), "only resting owners are left");
	take(
		b, (struct msg) { .id = MSG_END });
	(void)namer_run(b->namer, 2 * SECOND);
	cr_assert_eq(namer_run(b->namer, 2 * SECOND + NAMER_LATE_NS), 0);
	cr_expect_eq(sent(b), 2, "at the end no owner rests");
	bench_free(b);
}

/* A stream of short epochs does not wait longer and longer. */
Test(namer, an_epoch_waits_at_its_end_for_a_part_of_its_time)
{
	struct bench *b = bench_new();
	const uint64_t end_ns = SECOND + SECOND / 2;

	naming_turns_spend(&b->namer->turns, 1, 100 * SECOND, SECOND);
	sample(b, 10, 1);
	sample(b, 11, 2);
	filestore_answer(&b->files, b->requests[1], -1, SECOND);
	cr_assert_eq(namer_run(b->namer, SECOND), 0);
	cr_expect_eq(namer_forget(b->namer, end_ns), NAMER_WAIT);
	cr_expect_eq(namer_forget(b->namer, end_ns + SECOND / 32), NAMER_WAIT);
	cr_expect_eq(sent(b), 1);
	cr_expect_eq(namer_forget(b->namer, end_ns + SECOND / 16), 0);
	cr_expect_eq(sent(b), 2);
	bench_free(b);
}

/* If a frame was sent unnamed, it is sent again with its name, for other owners. */
Test(namer, a_frame_sent_unnamed_is_sent_again_with_its_name)
{
	struct bench *b = bench_new();
	struct msg m;
	unsigned frames = 0, slowed = 0;

	naming_turns_spend(&b->namer->turns, 1, SECOND, SECOND);
	sample(b, 10, 1);
	sample(b, 11, 2);
	for (unsigned i = 0; i < EVENTS_ASIDE_MAX; i++) { /* so that there is no room */
		const struct event e = { .kind = EVENT_SAMPLE, .owner = 1 };

		(void)events_aside_add(&b->namer->aside, &e, 1);
	}
	filestore_answer(&b->files, b->requests[1], -1, SECOND);
	cr_assert_geq(namer_run(b->namer, SECOND), 0);
	cr_expect_geq(sent(b), 2);
	answer_all(b);
	take(b, (struct msg){ .id = MSG_SAMPLE, .sample = { .stack = 10, .thread = 2 } });
	cr_assert_geq(namer_run(b->namer, 2 * SECOND), 0);
	cr_assert_eq(stream_flush(&b->out), 0);
	while (stream_next(&b->in, &m) == 0) {
		if (m.id != MSG_FRAME || m.frame.id != 10)
			continue;
		frames++;
		slowed += (m.frame.flags & MSG_FRAME_UNNAMED_SLOW) != 0;
	}
	cr_expect_geq(frames, 2);
	cr_expect_eq(slowed, frames - 1);
	bench_free(b);
}

Test(events_aside, the_largest_holder_gives_way)
{
	struct events_aside a = { 0 };
	struct event e = { .kind = EVENT_SAMPLE, .owner = 1 };

	while (events_aside_add(&a, &e, 5) == 0)
		;
	cr_expect_eq(a.len, EVENTS_ASIDE_MAX);
	cr_expect_null(events_aside_last(&a, 1));
	e.owner = 2;
	cr_expect_eq(events_aside_add(&a, &e, 6), -ENOBUFS);
	struct events_aside_entry *last = events_aside_last(&a, 2);

	cr_assert_eq(last, &a.at[EVENTS_ASIDE_MAX - 1]);
	events_aside_replace(&a, last, &e, 6);
	cr_expect(events_aside_has(&a, 6));
	e = (struct event){ .kind = EVENT_PROCESS_END, .owner = 1 };
	cr_expect_eq(events_aside_add(&a, &e, 5), 0, "an end always has room");
	for (size_t i = 0; i < a.len; i++)
		a.at[i].process = 0;
	events_aside_sweep(&a);
	cr_expect_eq(a.len, 0);
	cr_expect_eq(a.held_by.held, 0);
	events_aside_done(&a);
}

Test(naming_turns, an_owner_counts_as_slow_for_a_while)
{
	struct naming_turns t = { 0 };

	naming_turns_note_slow(&t, 7, SECOND);
	cr_expect(naming_turns_was_slow(&t, 7, SECOND + 1));
	cr_expect_not(naming_turns_was_slow(&t, 8, SECOND + 1));
	cr_expect_not(naming_turns_was_slow(&t, 7, SECOND + NAMING_TURNS_SLOW_NS));
}
