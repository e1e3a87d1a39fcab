/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/peer/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/bus/bus.h"
#include "common/wire/bus/fdlane.h"

struct peer {
	struct peer_config config;
	bool listens;
	/* Its route has one direction, no lane, and no hello besides that of the stream. */
	bool one_way;
	struct bus *bus;
	struct fdlane *lane; /* NULL: none */
	struct stream_in in;
	struct stream_out out;
	struct buf message; /* the batch received last */
	bool unfed;	    /* not fed to `in` yet */
	bool unread;	    /* `in` may contain a message */
	unsigned batches;   /* taken since the last PEER_EMPTY */
	bool dropped;
	uint64_t epoch; /* of `out` */
	bool greeted;
	int page; /* only of a listener, for this peer; -1: none */
	bool page_sent;
	uint64_t rest_ms;
};

static int send_batch(void *ctx, struct span batch)
{
	const struct peer *p = ctx;
	const struct peer_config *c = &p->config;

	if (!c->send_wait_ms)
		return bus_send(p->bus, batch);
	for (unsigned waits = 1;; waits++) {
		int r = bus_send_wait(p->bus, batch, c->send_wait_ms);

		if (r != -ETIMEDOUT)
			return r;
		r = c->patience(c->ctx, waits);
		if (r)
			return r;
	}
}

static int peer_new(const struct peer_config *c, bool listens, struct peer **ret)
{
	const struct busroute *route = busroute_of(c->route);
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->config = *c;
	p->listens = listens;
	p->one_way = !route->from_listener.way || !route->from_dialer.way;
	p->message = BUF_INIT(route->max);
	p->page = -1;
	stream_out_init(&p->out, c->batch_max, send_batch, p);
	stream_in_init(&p->in);
	*ret = p;
	return 0;
}

void peer_free(struct peer *p)
{
	if (!p)
		return;
	bus_free(p->bus);
	fdlane_free(p->lane);
	if (p->page >= 0)
		close(p->page);
	stream_out_done(&p->out);
	stream_in_done(&p->in);
	buf_done(&p->message);
	free(p);
}

/* Its messages are a separate stream. */
static void begin_receiving(struct peer *p)
{
	const struct busroute *route = busroute_of(p->config.route);

	stream_in_done(&p->in);
	stream_in_init(&p->in);
	p->in.way = p->listens ? route->from_dialer.way : route->from_listener.way;
	p->in.of_run = true;
	p->unfed = p->unread = p->dropped = false;
}

static int put_hello(struct peer *p)
{
	if (p->greeted)
		return 0;
	const struct msg hello = { .id = MSG_HELLO,
				   .hello = { .schema = MSG_SCHEMA,
					      .producer = str_from(p->config.producer),
					      .build = msg_build() } };
	const int r = stream_put(&p->out, &hello);

	p->greeted = !r;
	return r;
}

static void renew_page(struct peer *p)
{
	if (p->page >= 0)
		close(p->page);
	p->page = lastword_new();
	p->page_sent = false;
	if (p->rest_ms)
		lastword_rest(p->page, p->rest_ms);
}

/* A listener got a peer. */
static void begin(struct peer *p)
{
	begin_receiving(p);
	stream_out_epoch(&p->out, ++p->epoch);
	p->greeted = false;
	renew_page(p);
}

int peer_listen(const struct peer_config *c, struct peer **ret)
{
	struct peer *p;
	int r = peer_new(c, true, &p);

	if (r)
		return r;
	r = bus_listen(c->route, c->run_dir, c->uid, &p->bus);
	if (!r && !p->one_way)
		r = fdlane_listen(c->route, c->run_dir, c->uid, &p->lane);
	if (r) {
		peer_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

int peer_dial(const struct peer_config *c, int timeout_ms, struct peer **ret)
{
	struct peer *p;
	int r = peer_new(c, false, &p);

	if (r)
		return r;
	r = bus_dial(c->route, c->run_dir, c->uid, timeout_ms, &p->bus);
	if (!r && !p->one_way)
		r = fdlane_dial(c->route, c->run_dir, c->uid, timeout_ms, &p->lane);
	if (!r) {
		begin_receiving(p);
		stream_out_epoch(&p->out, clock_mono_ns());
		r = p->one_way ? 0 : put_hello(p);
	}
	if (r) {
		peer_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

int peer_bus_fd(const struct peer *p)
{
	return bus_fd(p->bus);
}

int peer_lane_fd(const struct peer *p)
{
	return p->one_way ? -1 : fdlane_fd(p->lane);
}

bool peer_connected(const struct peer *p)
{
	return bus_connected(p->bus);
}

/* --- receiving --- */

/* Takes a message of the last batch. If we run out of memory, this is not the peer's fault, and
 * dropping the peer would only cost more memory. */
static int next_message(struct peer *p, struct msg *ret)
{
	if (p->unfed) {
		const int r = stream_feed(&p->in, buf_span(&p->message));

		if (r)
			return r == -ENOBUFS ? PEER_UNRULY : r;
		p->unfed = false;
		p->unread = true;
	}
	while (p->unread) {
		const int r = stream_next(&p->in, ret);

		if (r == STREAM_AGAIN)
			p->unread = false;
		else if (r == STREAM_MALFORMED)
			return PEER_UNRULY;
		else if (r == STREAM_SCHEMA)
			return PEER_SCHEMA;
		else if (r || p->one_way || ret->id != MSG_HELLO)
			return r;
	}
	return PEER_EMPTY;
}

/* Returns 0 if a batch came or was ignored; PEER_EMPTY, PEER_CAME, PEER_WENT or -errno. */
static int next_batch(struct peer *p)
{
	const int r = bus_recv(p->bus, &p->message);

	switch (r) {
	case 0:
		p->unfed = !p->dropped;
		return 0;
	case BUS_EMPTY:
		return PEER_EMPTY;
	case BUS_PEER_CAME:
		if (p->listens)
			begin(p);
		return PEER_CAME;
	case BUS_PEER_WENT:
		return PEER_WENT;
	default:
		return r;
	}
}

int peer_recv(struct peer *p, struct msg *ret)
{
	const unsigned most = p->config.batches_at_once;
	int r;

	for (;;) {
		r = next_message(p, ret);
		if (r != PEER_EMPTY)
			return r;
		r = most && p->batches == most ? PEER_EMPTY : next_batch(p);
		if (r == PEER_EMPTY || r < 0)
			p->batches = 0;
		else
			p->batches++;
		if (r)
			return r;
	}
}

uint64_t peer_missing(struct peer *p)
{
	return stream_missing(&p->in);
}

bool peer_epoch_began(const struct peer *p)
{
	return p->in.new_epoch;
}

void peer_epoch_taken(struct peer *p)
{
	p->in.new_epoch = false;
}

/* --- sending --- */

int peer_put(struct peer *p, const struct msg *m)
{
	return stream_put(&p->out, m);
}

int peer_flush(struct peer *p)
{
	return stream_flush(&p->out);
}

bool peer_has_unsent(const struct peer *p)
{
	return p->out.batch.len > 0;
}

/* --- a listener --- */

int peer_poll_lane(struct peer *p)
{
	return fdlane_poll(p->lane);
}

int peer_greet(struct peer *p)
{
	if (!bus_connected(p->bus))
		return -ENOTCONN;
	if (p->page < 0)
		p->page = lastword_new();
	if (!p->page_sent && p->page >= 0)
		p->page_sent = fdlane_send(p->lane, LASTWORD_LANE_ID, p->page) == 0;
	return put_hello(p);
}

bool peer_has_page(const struct peer *p)
{
	return p->page_sent;
}

int peer_send_file(struct peer *p, uint64_t id, int fd)
{
	return fdlane_send(p->lane, id, fd);
}

uint32_t peer_pid(const struct peer *p)
{
	return p->lane ? fdlane_pid(p->lane) : 0;
}

void peer_drop(struct peer *p)
{
	if (p->dropped)
		return;
	p->dropped = true;
	p->unfed = p->unread = false;
	bus_drop_peer(p->bus);
	if (p->lane)
		fdlane_drop(p->lane);
}

bool peer_dropped(const struct peer *p)
{
	return p->dropped;
}

struct lastword peer_lastword(const struct peer *p)
{
	return lastword_read(p->page);
}

void peer_grant(struct peer *p, uint64_t bytes)
{
	lastword_grant(p->page, bytes);
}

uint64_t peer_wanted(const struct peer *p)
{
	return lastword_wanted(p->page);
}

void peer_stop(struct peer *p, uint64_t id, uint64_t after_ns)
{
	lastword_stop(p->page, id, after_ns);
}

void peer_rest(struct peer *p, uint64_t ms)
{
	if (p->rest_ms != ms)
		lastword_rest(p->page, ms);
	p->rest_ms = ms;
}

/* --- a dialer --- */

int peer_recv_file(struct peer *p, uint64_t *ret_id, int *ret_fd)
{
	for (;;) {
		int r = fdlane_recv(p->lane, ret_id, ret_fd);

		if (r && r != -EBADMSG)
			return r;
		if (*ret_id != LASTWORD_LANE_ID)
			return 0;
		if (*ret_fd >= 0)
			(void)lastword_take(*ret_fd);
	}
}
