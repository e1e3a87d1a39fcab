/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/session/outlet.h"

#include <criterion/criterion.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "tests/unit/run_dir.h"

TestSuite(outlet, .init = make_run_dir, .fini = remove_run_dir, .timeout = 60);

#define SIZE 500000
#define MANY 60

static uint8_t bytes[SIZE];
static const struct request some = { .plain = { .data = bytes, .len = SIZE },
				     .gzip = { .data = bytes, .len = SIZE },
				     .samples = 7 };

static void await_send(struct outlet *o)
{
	for (int i = 0; i < 500 && !o->there; i++) {
		usleep(10000);
		outlet_look(o);
	}
	cr_assert(o->there);
}

static struct bus *dial(void)
{
	struct bus *b;

	cr_assert_eq(bus_dial(BUSROUTE_EXPORT, run_dir, getuid(), 5000, &b), 0);
	return b;
}

/* The next message of a stream from prof-export, whose batches arrive one by one. */
static uint32_t next(struct bus *b, struct stream_in *in, struct msg *ret)
{
	static struct buf batch;
	int r = stream_next(in, ret);

	while (r == STREAM_AGAIN) {
		int e;

		do
			e = await(b, &batch);
		while (e == BUS_PEER_CAME);
		cr_assert_eq(e, 0);
		cr_assert_eq(stream_feed(in, buf_span(&batch)), 0);
		r = stream_next(in, ret);
	}
	cr_assert_eq(r, 0);
	return ret->id;
}

static void begin(struct stream_in *in)
{
	stream_in_init(in);
	in->way = MSG_EXPORT_TO_SEND;
	in->of_run = true;
}

Test(outlet, without_prof_send_requests_are_dropped_at_once_and_counted)
{
	struct outlet o;
	struct status st = { 0 };
	const uint64_t since = clock_mono_ns();

	cr_assert_eq(outlet_open(&o, run_dir, getuid()), 0);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(outlet_put(&o, &some), 0);
	cr_assert_lt(clock_mono_ns() - since, 2000000000u);
	outlet_status(&o, &st);
	cr_assert_eq(st.requests, MANY);
	cr_assert_eq(st.requests_away, MANY);
	cr_assert_eq(st.requests_lost, MANY);
	cr_assert_eq(st.requests_lost_samples, 7 * MANY);
	outlet_end(&o);
}

Test(outlet, a_prof_send_that_hangs_costs_one_wait_and_may_recover)
{
	struct outlet o;
	struct stream_in in;
	struct msg m;

	cr_assert_eq(outlet_open(&o, run_dir, getuid()), 0);
	struct bus *b = dial();

	await_send(&o);
	const uint64_t since = clock_mono_ns();

	for (int i = 0; i < MANY; i++)
		cr_assert_eq(outlet_put(&o, &some), 0);
	cr_assert_lt(clock_mono_ns() - since, 5000000000u);
	cr_assert_gt(o.slow, 0);
	cr_assert_eq(o.away, 0);
	const uint64_t taken = MANY - o.slow;

	cr_assert_gt(taken, 0);
	begin(&in);
	cr_assert_eq(next(b, &in, &m), MSG_HELLO);
	for (uint64_t i = 0; i < taken; i++) {
		cr_assert_eq(next(b, &in, &m), MSG_EXPORT);
		cr_assert_eq(m.export.request.len, SIZE);
		cr_assert_eq(m.export.samples, 7);
	}
	/* Then it accepts requests again. */
	const uint64_t slow = o.slow;

	cr_assert_eq(outlet_put(&o, &some), 0);
	cr_assert_eq(o.slow, slow);
	cr_assert_eq(next(b, &in, &m), MSG_EXPORT);
	cr_assert_eq(m.export.id, MANY + 1);
	bus_free(b);
	stream_in_done(&in);
	outlet_end(&o);
}

Test(outlet, the_next_prof_send_is_greeted_and_gets_later_requests)
{
	struct outlet o;
	struct stream_in in;
	struct msg m;

	cr_assert_eq(outlet_open(&o, run_dir, getuid()), 0);
	for (int i = 0; i < 2; i++) {
		struct bus *b = dial();

		await_send(&o);
		cr_assert_eq(outlet_put(&o, &some), 0);
		begin(&in);
		cr_assert_eq(next(b, &in, &m), MSG_HELLO);
		cr_assert_eq(next(b, &in, &m), MSG_EXPORT);
		cr_assert_eq(m.export.id, (uint64_t)i + 1);
		bus_free(b);
		stream_in_done(&in);
		for (int k = 0; k < 500 && o.there; k++) {
			usleep(10000);
			outlet_look(&o);
		}
		cr_assert_not(o.there);
	}
	cr_assert_eq(o.away + o.slow, 0);
	outlet_end(&o);
}
