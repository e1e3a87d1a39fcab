/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and requests of OTLP: their contents, how they are divided, and their memory. */
#include <errno.h>
#include "common/cell/budget/budget.h"
#include "tests/otlp/rules.h"
#include "tests/unit/model_fixture.h"
#include "tools/prof-export/otlp/otlp.h"
#include "tools/prof-export/session/sending.h"

#define MS 1000000u

/* The requests that were made. */
struct taken {
	uint64_t requests, samples, largest, largest_gzip;
	int result; /* of flush */
};

static int take_request(void *ctx, const struct request *r)
{
	struct taken *t = ctx;

	cr_assert_eq(otlp_rules_check(r->plain), r->samples);
	t->requests++;
	t->samples += r->samples;
	t->largest = r->plain.len > t->largest ? r->plain.len : t->largest;
	t->largest_gzip = r->gzip.len > t->largest_gzip ? r->gzip.len : t->largest_gzip;
	cr_assert_lt(r->plain.len, 4u << 20);
	cr_assert_leq(r->gzip.len, REQUEST_PACKED_MAX);
	return t->result;
}

static struct otlp *begin(struct taken *t, size_t memory_max)
{
	static struct otlp o;
	const struct otlp_options options = { .reporting = { .window_s = 1 },
					      .gzip = true,
					      .memory_max = memory_max,
					      .flush = take_request,
					      .ctx = t };

	otlp_init(&o, &options);
	return &o;
}

static struct model *host(void)
{
	struct model *m = new_model(MODEL_ADDRESSES, false, 64u << 20);

	take(m, (struct msg){ .id = MSG_HELLO,
			      .hello = { .kind = 1,
					 .hostname = STR_LIT("h"),
					 .hz = 100,
					 .period = 10 * MS,
					 .unit = STR_LIT("nanoseconds"),
					 .event = STR_LIT("cpu-clock"),
					 .mono_ns = 1,
					 .wall_ns = 1000000000000000000u } });
	simple(m);
	return m;
}

static int put(struct otlp *o, struct model *m, uint64_t stack, uint64_t thread, uint64_t time_ns)
{
	struct model_sample s = { 0 };
	const struct msg msg = {
		.id = MSG_SAMPLE,
		.sample = { .stack = stack, .thread = thread, .time_ns = time_ns, .value = 10 * MS }
	};

	cr_assert_eq(model_take(m, &msg, &s), MODEL_SAMPLE);
	return otlp_sample(o, m, &s);
}

static void end(struct otlp *o, struct model *m)
{
	cr_expect_eq(otlp_finish(o, m), 0);
	cr_expect_eq(o->pool.used, 0);
	cr_expect_eq(o->spare.used, 0);
	otlp_done(o);
	model_free(m);
}

Test(otlp, a_window_is_one_request)
{
	struct taken t = { 0 };
	struct otlp *o = begin(&t, 16u << 20);
	struct model *m = host();

	for (unsigned i = 0; i < 30; i++)
		cr_assert_eq(put(o, m, 1, 1, 1000 * MS + i * 100 * MS), 0);
	cr_expect_eq(t.requests, 2);
	end(o, m);
	cr_expect_eq(t.requests, 3);
	cr_expect_eq(t.samples, 30);
}

Test(otlp, the_models_numbers_may_become_void_within_a_window)
{
	struct taken t = { 0 };
	struct otlp *o = begin(&t, 16u << 20);
	struct model *m = host();

	cr_assert_eq(put(o, m, 1, 1, 1000 * MS), 0);
	model_forget(m);
	otlp_forget(o);
	process(m, 1, 10, STR_LIT("a"));
	function(m, 9, STR_LIT("other"));
	frame(m, 7, 300, 9);
	take(m, (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = LIST(7) } });
	cr_assert_eq(put(o, m, 1, 1, 1001 * MS), 0);
	/* The rules hold: one resource, and the tables have no duplicates. */
	end(o, m);
	cr_expect_eq(t.requests, 1);
	cr_expect_eq(t.samples, 2);
}

/* A stack with names that hardly compress. */
static void hostile_stack(struct model *m, uint64_t id, unsigned frames, size_t name_len)
{
	uint64_t list[512];
	char name[1024];

	cr_assert(frames <= 512 && name_len <= sizeof(name));
	for (unsigned i = 0; i < frames; i++) {
		list[i] = id * 512 + i;
		uint64_t x = list[i] * 0x9e3779b97f4a7c15u | 1;

		for (size_t k = 0; k < name_len; k++) {
			x ^= x >> 12;
			x ^= x << 25;
			x ^= x >> 27;
			name[k] = (char)('!' + (x * 0x2545f4914f6cdd1du >> 32) % 94);
		}
		function(m, list[i], (struct str){ .data = name, .len = (uint32_t)name_len });
		frame(m, list[i], list[i], list[i]);
	}
	take(m, (struct msg){ .id = MSG_STACK,
			      .stack = { .id = id, .frames = { .data = list, .len = frames } } });
}

Test(otlp, incompressible_samples_need_several_requests)
{
	struct taken t = { 0 };
	struct otlp *o = begin(&t, 64u << 20);
	struct model *m = host();

	for (uint64_t i = 2; i < 42; i++) {
		hostile_stack(m, i, 64, 1000);
		cr_assert_eq(put(o, m, i, 1, 1000 * MS + i), 0);
	}
	end(o, m);
	cr_expect_eq(t.samples, 40);
	cr_expect_geq(t.requests, 3);
	cr_expect_gt(t.largest_gzip, REQUEST_PACKED_MAX / 4);
}

Test(otlp, a_window_that_is_full_ends_and_loses_nothing)
{
	struct taken t = { 0 };
	struct otlp *o = begin(&t, 1u << 20);
	struct model *m = host();

	for (uint64_t i = 2; i < 202; i++) {
		hostile_stack(m, i, 8, 1000);
		cr_assert_eq(put(o, m, i, 1, 1000 * MS + i), 0);
		cr_assert_leq(o->pool.used, o->pool.max);
	}
	cr_expect_eq(model_totals(m)->lost[LOST_LIMIT], 0);
	end(o, m);
	cr_expect_eq(t.samples, 200);
	cr_expect_leq(t.largest, (1u << 20) / 8);
}

/* As at 99 Hz on two cpus that run compilers and interpreters, beside an output. */
Test(otlp, a_busy_window_is_one_request_at_the_default_limit)
{
	struct session_options main = { .format = FORMAT_STREAM, .reporting = REPORTING_DEFAULTS };
	static struct sending sending;
	struct taken t = { 0 };
	struct budget b;

	budget_split(BUDGET_DEFAULT, BUDGET_SEND | BUDGET_METRICS, &b);
	main.memory_max = b.model;
	main.requests_max = b.requests;
	cr_assert_eq(sending_init(&sending, &main, true), 0);
	struct otlp *o = begin(&t, sending.own.otlp.options.memory_max);
	struct model *m = host();

	for (uint64_t i = 2; i < 992; i++) {
		hostile_stack(m, i, 4, 60);
		cr_assert_eq(put(o, m, i, 1, 1000 * MS + i * MS), 0);
	}
	end(o, m);
	cr_expect_eq(t.requests, 1);
	cr_expect_eq(t.samples, 990);
	sending_end(&sending, false);
}

Test(otlp, one_sample_that_is_too_large_is_cut)
{
	struct taken t = { 0 };
	struct otlp *o = begin(&t, 1u << 20);
	struct model *m = host();

	hostile_stack(m, 2, 512, 1000);
	cr_assert_eq(put(o, m, 2, 1, 1000 * MS), 0);
	end(o, m);
	cr_expect_eq(t.samples, 1);
}

Test(otlp, without_any_memory_samples_are_counted_as_lost)
{
	struct taken t = { 0 };
	struct otlp *o = begin(&t, 512);
	struct model *m = host();

	cr_assert_eq(put(o, m, 1, 1, 1000 * MS), 0);
	cr_expect_eq(model_totals(m)->lost[LOST_LIMIT], 1);
	end(o, m);
	cr_expect_eq(t.samples, 0);
}

Test(otlp, an_error_of_the_output_comes_back)
{
	struct taken t = { .result = -EPIPE };
	struct otlp *o = begin(&t, 16u << 20);
	struct model *m = host();

	cr_assert_eq(put(o, m, 1, 1, 1000 * MS), 0);
	cr_expect_eq(put(o, m, 1, 1, 3000 * MS), -EPIPE);
	otlp_done(o);
	model_free(m);
}

Test(otlp, times_that_no_clock_shows_break_nothing)
{
	struct taken t = { 0 };
	struct otlp *o = begin(&t, 16u << 20);
	struct model *m = host();
	const uint64_t times[] = { UINT64_MAX, 0, UINT64_MAX - 1, 1, 1ull << 62, 1ull << 63 };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		cr_assert_eq(put(o, m, 1, 1, times[i]), 0);
	cr_assert_eq(otlp_time(o, m, UINT64_MAX), 0);
	end(o, m);
	cr_expect_eq(t.samples, 6);
}
