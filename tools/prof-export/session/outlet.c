/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/session/outlet.h"

#include <errno.h>
#include <poll.h>
#include "common/base/system/clock.h"

#define SLOW_MS 50     /* how long to wait for a full bus */
#define ENDING_MS 1000 /* the same at the end, when nothing else waits for prof-export */
#define LEAVE_MS 2000  /* how long to wait, after the end message, until prof-send closes */
#define STEP_MS 20

static int send_batch(void *ctx, struct span batch)
{
	struct outlet *o = ctx;
	const int ms = !o->patient ? 0 : o->ending ? ENDING_MS : SLOW_MS;

	o->refused = ms ? bus_send_wait(o->bus, batch, ms) : bus_send(o->bus, batch);
	o->patient = !o->refused;
	/* A request that the bus refused is dropped. If this returned an error, the stream would
	 * keep the request and send it later. */
	return 0;
}

int outlet_open(struct outlet *o, const char *run_dir, uid_t uid)
{
	*o = OUTLET_NONE;
	stream_out_init(&o->out, MSG_MAX_SIZE, send_batch, o);
	return bus_listen(BUSROUTE_EXPORT, run_dir, uid, &o->bus);
}

int outlet_fd(const struct outlet *o)
{
	return o->bus ? bus_fd(o->bus) : -1;
}

/* Returns 0 if the bus took the message. */
static int put(struct outlet *o, const struct msg *m)
{
	int r = stream_put(&o->out, m);

	if (!r)
		r = stream_flush(&o->out);
	return r ? r : o->refused;
}

static void greet(struct outlet *o)
{
	const struct msg hello = { .id = MSG_HELLO,
				   .hello = { .schema = MSG_SCHEMA, .build = msg_build() } };

	stream_out_epoch(&o->out, ++o->epoch);
	o->patient = true;
	o->there = !put(o, &hello);
	/* Without the hello, prof-send could read nothing that follows. */
	if (!o->there)
		bus_drop_peer(o->bus);
}

void outlet_look(struct outlet *o)
{
	for (;;) {
		const int event = o->bus ? bus_event(o->bus) : BUS_EMPTY;

		if (event == BUS_EMPTY)
			return;
		o->there = false;
		if (event == BUS_PEER_CAME)
			greet(o);
	}
}

int outlet_put(void *ctx, const struct request *r)
{
	struct outlet *o = ctx;
	const struct msg m = { .id = MSG_EXPORT,
			       .export = { .id = ++o->requests,
					   .samples = r->samples,
					   .size = r->plain.len,
					   .request = r->gzip } };

	o->samples += r->samples;
	outlet_look(o);
	const int e = o->there ? put(o, &m) : -ENOTCONN;

	if (!e)
		return 0;
	if (e == -ENOTCONN)
		o->away++;
	else
		o->slow++;
	o->lost_samples += r->samples;
	return 0;
}

void outlet_end(struct outlet *o)
{
	const struct msg end = {.id = MSG_END };
	const uint64_t until = clock_mono_ns() + LEAVE_MS * 1000000ull;

	o->ending = true;
	outlet_look(o);
	if (o->there && !put(o, &end)) {
		while (o->there && clock_mono_ns() < until) {
			struct pollfd p = { .fd = outlet_fd(o), .events = POLLIN };

			poll(&p, 1, STEP_MS);
			outlet_look(o);
		}
	}
	outlet_close(o);
}

void outlet_close(struct outlet *o)
{
	bus_free(o->bus);
	o->bus = NULL;
	o->there = false;
	stream_out_done(&o->out);
}

void outlet_status(const struct outlet *o, struct status *st)
{
	st->requests = o->requests;
	st->requests_lost = o->away + o->slow;
	st->requests_taken = o->requests - st->requests_lost;
	st->requests_away = o->away;
	st->requests_samples = o->samples;
	st->requests_lost_samples = o->lost_samples;
}
