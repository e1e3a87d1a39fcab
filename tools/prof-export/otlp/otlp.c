/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/otlp.h"

#include <errno.h>
#include <sys/random.h>
#include "common/base/bytes/numbers.h"
#include "common/wire/reason.h"

/* Parts of the memory, by what busy hosts need for each byte of a request's upper bound: two in the
 * window, and two in the copy of it that is being sent, including what copying and sorting need.
 * Both get a margin. The rest is for three buffers with the request's bytes. */
#define REQUEST_PART 8
#define WINDOW_PARTS(n) ((n) / 16 * 5)
#define SPARE_PARTS(n) ((n) / 16 * 6)
/* The copy has other numbers, which may take more bytes than those of the window. So a window that
 * is full must be a little smaller than a request may be. */
#define COPY_PART 16
/* A request with one stack stays below REQUEST_PACKED_MAX even if gzip does not make it smaller. */
#define STACK_MAX (REQUEST_PACKED_MAX / 4 * 3)
#define GZIP_MORE 1024 /* bytes that gzip may add to a request */
#define LATE_NS 2000000000u
#define CLOCK_SET_NS 1000000000u
#define TIME_MAX (1ull << 62) /* the sum of two such times never overflows */

void otlp_init(struct otlp *o, const struct otlp_options *options)
{
	*o = (struct otlp){ .options = *options,
			    .pool.max = WINDOW_PARTS(options->memory_max),
			    .spare.max = SPARE_PARTS(options->memory_max) };
	/* If getrandom fails, all hosts have the same sequence of window lengths. */
	if (getrandom(&o->random, sizeof(o->random), GRND_NONBLOCK) != (ssize_t)sizeof(o->random))
		o->random = 0;
	o->random |= 1;
}

void otlp_done(struct otlp *o)
{
	window_done(&o->window);
	request_room_done(&o->room);
}

void otlp_forget(struct otlp *o)
{
	window_forget(&o->window);
}

void otlp_process(struct otlp *o, const struct model *m, const struct epoch_process *p)
{
	if (p)
		window_process(&o->window, m, p);
}

void otlp_resume(struct otlp *o, const struct model *m)
{
	memcpy(o->told, model_totals(m)->lost, sizeof(o->told));
}

/* --- requests --- */

static size_t request_max(const struct otlp *o)
{
	const size_t most = o->options.memory_max / REQUEST_PART;

	return most < REQUEST_PLAIN_MAX ? most : REQUEST_PLAIN_MAX;
}

static size_t window_max(const struct otlp *o)
{
	return request_max(o) - request_max(o) / COPY_PART;
}

/* Sends the window as one request. Returns the results of request_pack and request_gzip.
 * *ret_flush: the result of flush. */
static int send_whole(struct otlp *o, const struct window *w, const struct request_times *t,
		      int *ret_flush)
{
	struct request request;
	int r = request_pack(w, t, &o->spare, &o->room, &request);

	if (!r && (o->options.gzip || request.plain.len + GZIP_MORE > REQUEST_PACKED_MAX))
		r = request_gzip(&o->room, &request);
	if (!r)
		*ret_flush = o->options.flush(o->options.ctx, &request);
	return r;
}

/* Like send_whole, but sends only these ticks of the open window. */
static int send_part(struct otlp *o, const struct model *m, const struct request_times *t,
		     size_t from, size_t to, int *ret_flush)
{
	struct window part;
	int r = window_begin(&part, &o->spare, request_max(o), o->options.reporting.receiver);

	if (!r)
		r = window_part(&o->window, from, to, &part);
	if (!r)
		r = send_whole(o, &part, t, ret_flush);
	window_done(&part);
	return r;
}

/* Sends these ticks in as many requests as needed. Errors of flush. */
static int send_ticks(struct otlp *o, struct model *m, const struct request_times *t, size_t from,
		      size_t to)
{
	int flushed = 0;

	if (from == to || !send_part(o, m, t, from, to, &flushed))
		return flushed;
	if (to - from == 1) {
		model_lose(m, LOST_LIMIT, 1);
		return 0;
	}
	const size_t middle = from + (to - from) / 2;
	const int r = send_ticks(o, m, t, from, middle);

	return r ? r : send_ticks(o, m, t, middle, to);
}

static int send_losses(struct otlp *o, const struct model *m, const struct request_times *t)
{
	const struct model_totals *totals = model_totals(m);
	struct window w;
	int flushed = 0,
	    r = window_begin(&w, &o->spare, request_max(o), o->options.reporting.receiver);

	for (unsigned i = 0; !r && i < STATUS_REASONS; i++) {
		const uint64_t n = totals->lost[i] - o->told[i];

		if (n)
			r = window_lose(&w, m, reason_lost_word(i), n);
	}
	if (!r && w.samples.len)
		r = send_whole(o, &w, t, &flushed);
	window_done(&w);
	/* If the losses did not fit into memory, the next window reports them. */
	if (!r && !flushed)
		memcpy(o->told, totals->lost, sizeof(o->told));
	return flushed;
}

/* --- windows --- */

static uint64_t window_ns(const struct otlp *o)
{
	const uint64_t ns = (uint64_t)(o->options.reporting.window_s * 1e9);

	return ns ? ns : 1;
}

static uint64_t next_random(struct otlp *o)
{
	/* xorshift64*, by Marsaglia and Vigna. */
	o->random ^= o->random >> 12;
	o->random ^= o->random << 25;
	o->random ^= o->random >> 27;
	return o->random * 0x2545f4914f6cdd1dull;
}

static uint64_t length_ns(struct otlp *o)
{
	const uint64_t length = window_ns(o),
		       most = length / 100 * o->options.reporting.jitter_percent;

	return length - most + (most ? next_random(o) % (2 * most + 1) : 0);
}

static uint64_t wall_offset(const struct model *m)
{
	const struct model_clock *c = model_clock(m);
	const uint64_t wall = numbers_smaller(c->wall_ns, TIME_MAX);

	return wall > c->mono_ns ? wall - c->mono_ns : 0;
}

static void open_window(struct otlp *o, const struct model *m, uint64_t begin_ns)
{
	o->begin_ns = begin_ns;
	o->end_ns = begin_ns + length_ns(o);
	o->wall_offset_ns = wall_offset(m);
	o->open = true;
}

/* Ends the window at end_ns, or after its last sample if that is later. */
static int close_window(struct otlp *o, struct model *m, uint64_t end_ns)
{
	struct request_times t = { .begin_ns = o->begin_ns,
				   .end_ns = end_ns,
				   .wall_offset_ns = o->wall_offset_ns };

	for (size_t i = 0; i < o->window.ticks.len; i++) {
		const uint64_t ns = o->window.ticks.data[i].time_ns;

		t.begin_ns = numbers_smaller(ns, t.begin_ns);
		t.end_ns = ns < t.end_ns ? t.end_ns : ns + 1;
	}
	if (t.end_ns <= t.begin_ns)
		t.end_ns = t.begin_ns + 1;
	int r = send_ticks(o, m, &t, 0, o->window.ticks.len);

	if (!r)
		r = send_losses(o, m, &t);
	window_done(&o->window);
	o->open = false;
	return r;
}

static bool clock_was_set(const struct otlp *o, const struct model *m)
{
	const uint64_t now = wall_offset(m), then = o->wall_offset_ns;

	return (now > then ? now - then : then - now) > CLOCK_SET_NS;
}

/* Opens the window for this time, and closes an earlier one. A window that is over by less than
 * late_ns stays open. */
static int go_to(struct otlp *o, struct model *m, uint64_t ns, uint64_t late_ns)
{
	int r = 0;

	if (!o->open) {
		open_window(o, m, ns);
	} else if (ns >= o->end_ns + late_ns) {
		const uint64_t end_ns = o->end_ns;

		r = close_window(o, m, end_ns);
		open_window(o, m, ns - end_ns < window_ns(o) ? end_ns : ns);
	} else if (clock_was_set(o, m)) {
		r = close_window(o, m, ns);
		open_window(o, m, ns);
	}
	return r;
}

static uint64_t clamp_time(uint64_t ns)
{
	return numbers_smaller(ns, TIME_MAX);
}

int otlp_time(struct otlp *o, struct model *m, uint64_t ns)
{
	return go_to(o, m, clamp_time(ns), LATE_NS);
}

/* Adds the sample to an empty window, with as much of its stack as fits. Returns 0, -ENOBUFS or
 * -ENOMEM. */
static int add_first(struct otlp *o, const struct model *m, const struct model_sample *s,
		     uint64_t time_ns, uint32_t most)
{
	const size_t max = window_max(o);
	int r = window_begin(&o->window, &o->pool, numbers_smaller(max, STACK_MAX),
			     o->options.reporting.receiver);

	if (!r)
		r = window_add(&o->window, m, s, time_ns, most);
	if (r)
		window_done(&o->window);
	else
		window_widen(&o->window, max);
	return r;
}

static int add_alone(struct otlp *o, const struct model *m, const struct model_sample *s,
		     uint64_t time_ns)
{
	uint32_t most = s->stack->count;
	int r = add_first(o, m, s, time_ns, most);

	while (r && most) {
		most /= 2;
		r = add_first(o, m, s, time_ns, most);
	}
	return r;
}

int otlp_sample(struct otlp *o, struct model *m, const struct model_sample *s)
{
	const uint64_t ns = clamp_time(s->time_ns);
	int r = go_to(o, m, ns, 0);

	if (r)
		return r;
	if (o->window.pool) {
		if (!window_add(&o->window, m, s, ns, UINT32_MAX))
			return 0;
		const uint64_t end_ns = o->end_ns;

		r = close_window(o, m, o->begin_ns);
		open_window(o, m, ns);
		o->end_ns = end_ns;
	}
	if (add_alone(o, m, s, ns))
		model_lose(m, LOST_LIMIT, 1);
	return r;
}

int otlp_settle(struct otlp *o, struct model *m)
{
	const uint64_t behind_ns = clamp_time(model_totals(m)->last_ns) + 1, end_ns = o->end_ns;

	if (!o->open)
		return 0;
	const uint64_t ns = behind_ns < o->begin_ns ? o->begin_ns
						    : numbers_smaller(behind_ns, end_ns);
	const int r = close_window(o, m, ns);

	open_window(o, m, ns);
	o->end_ns = end_ns;
	return r;
}

void otlp_reopen(struct otlp *o, const struct model *m, uint64_t begin_ns, uint64_t end_ns)
{
	const uint64_t begin = clamp_time(begin_ns), end = clamp_time(end_ns);

	open_window(o, m, begin);
	if (end > begin)
		o->end_ns = end;
}

int otlp_finish(struct otlp *o, struct model *m)
{
	const uint64_t end_ns = clamp_time(model_totals(m)->end_ns);

	if (!o->open)
		open_window(o, m, end_ns);
	return close_window(o, m, numbers_smaller(end_ns, o->end_ns));
}
