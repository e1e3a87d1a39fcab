/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>
#include "common/bus.h"
#include "common/fdlane.h"
#include "common/stream.h"
#include "tools/prof-bpf/closing.h"
#include "tools/prof-bpf/filesrv.h"

#define MESSAGES_AT_ONCE 32

struct ticket {
	uint64_t number; /* ours */
	uint64_t id;	 /* the peer's */
	bool answered, message_sent;
	int fd, status;
	uint64_t size;
	bool memory; /* the answer is bytes */
	struct buf bytes;
	uint64_t *lengths;
	uint32_t pieces;
	struct ticket *prev, *next;
};

struct filesrv {
	struct filesrv_config config;
	struct bus *bus;
	struct fdlane *lane;
	struct stream_out out;
	struct stream_in in;
	struct buf message;
	uint64_t epoch, next_ticket;
	bool hello_sent;
	bool dropped; /* this peer broke the rules, and has not gone yet */
	bool halted;  /* there was no memory to take all of `message` */
	struct ticket places[FILESRV_OPEN_MAX];
	struct ticket *tickets, *unused; /* of the places */
	int lastword;			 /* of this peer; -1: none */
	bool lastword_sent;
};

static int send_batch(void *ctx, struct span batch)
{
	struct filesrv *f = ctx;

	return bus_send(f->bus, batch);
}

int filesrv_new(const struct filesrv_config *c, struct filesrv **ret)
{
	struct filesrv *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->config = *c;
	f->lastword = -1;
	for (unsigned i = 0; i < FILESRV_OPEN_MAX; i++)
		LL_PREPEND(f->unused, &f->places[i]);
	/* An answer a batch: the route's messages are small. */
	stream_out_init(&f->out, 1024, send_batch, f);
	stream_in_init(&f->in);
	int r = bus_listen(BUS_FILES, c->run_dir, c->peer, &f->bus);
	if (!r)
		r = fdlane_listen(BUS_FILES, c->run_dir, c->peer, &f->lane);
	if (r) {
		filesrv_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

static void ticket_free(struct filesrv *f, struct ticket *t)
{
	DL_DELETE(f->tickets, t);
	closing_give(t->fd);
	buf_done(&t->bytes);
	free(t->lengths);
	LL_PREPEND(f->unused, t);
}

static void forget_all(struct filesrv *f)
{
	while (f->tickets)
		ticket_free(f, f->tickets);
}

void filesrv_free(struct filesrv *f)
{
	if (!f)
		return;
	forget_all(f);
	bus_free(f->bus);
	fdlane_free(f->lane);
	if (f->lastword >= 0)
		close(f->lastword);
	stream_out_done(&f->out);
	stream_in_done(&f->in);
	buf_done(&f->message);
	free(f);
}

bool filesrv_idle(const struct filesrv *f)
{
	return !f->tickets;
}

int filesrv_bus_fd(const struct filesrv *f)
{
	return bus_fd(f->bus);
}

int filesrv_lane_fd(const struct filesrv *f)
{
	return fdlane_fd(f->lane);
}

/* False: the peer broke the rules. */
static bool take(struct filesrv *f, const struct msg *m)
{
	if (m->id == MSG_HELLO)
		return true;
	if (m->id == MSG_RUNTIME)
		return f->config.take_runtime(f->config.ctx, &m->runtime);
	if ((m->id != MSG_FILE_REQUEST && m->id != MSG_DEBUG_REQUEST && m->id != MSG_JIT_REQUEST &&
	     m->id != MSG_MEMORY_REQUEST) ||
	    !f->unused)
		return false;
	struct ticket *t = f->unused;
	LL_DELETE(f->unused, t);
	*t = (struct ticket){ .number = ++f->next_ticket,
			      .id = m->file_request.id, /* the first field of all */
			      .fd = -1 };
	DL_APPEND(f->tickets, t);
	if (m->id == MSG_FILE_REQUEST)
		f->config.want_file(f->config.ctx, t->number, &m->file_request);
	else if (m->id == MSG_JIT_REQUEST)
		f->config.want_jit(f->config.ctx, t->number, &m->jit_request);
	else if (m->id == MSG_MEMORY_REQUEST)
		f->config.want_memory(f->config.ctx, t->number, &m->memory_request);
	else
		f->config.want_debug(f->config.ctx, t->number, &m->debug_request);
	return true;
}

/* NULL: whoever asked is gone. */
static struct ticket *find_ticket(struct filesrv *f, uint64_t number)
{
	struct ticket *t;

	DL_FOREACH(f->tickets, t) {
		if (t->number == number && !t->answered)
			break;
	}
	return t;
}

void filesrv_memory(struct filesrv *f, uint64_t ticket, int status, struct buf *bytes,
		    struct u64s lengths)
{
	struct ticket *t = find_ticket(f, ticket);

	if (!t)
		return;
	t->answered = t->memory = true;
	t->status = status;
	if (status || !lengths.len)
		return;
	t->lengths = malloc(lengths.len * sizeof(*t->lengths));
	if (!t->lengths) {
		t->status = ENOMEM;
		return;
	}
	memcpy(t->lengths, lengths.data, lengths.len * sizeof(*t->lengths));
	t->pieces = lengths.len;
	t->bytes = *bytes;
	*bytes = BUF_INIT(0);
}

void filesrv_answer(struct filesrv *f, uint64_t ticket, int fd, int status, uint64_t size)
{
	struct ticket *t = find_ticket(f, ticket);

	if (!t) {
		closing_give(fd);
		return;
	}
	t->answered = true;
	t->fd = fd;
	t->status = status;
	t->size = size;
}

void filesrv_grant(struct filesrv *f, uint64_t bytes)
{
	lastword_grant(f->lastword, bytes);
}

uint64_t filesrv_wanted(const struct filesrv *f)
{
	return lastword_wanted(f->lastword);
}

static int transmit(struct filesrv *f)
{
	struct ticket *t, *next;

	if (!bus_connected(f->bus))
		return 0;
	if (!f->lastword_sent && f->lastword >= 0)
		f->lastword_sent = fdlane_send(f->lane, LASTWORD_LANE_ID, f->lastword) == 0;
	if (!f->hello_sent) {
		struct msg hello = { .id = MSG_HELLO,
				     .hello = { .schema = msg_schema_hash(),
						.producer = STR_LIT("prof-bpf") } };
		int r = stream_put(&f->out, &hello);

		if (r)
			return r;
		f->hello_sent = true;
	}
	DL_FOREACH_SAFE(f->tickets, t, next) {
		int r = 0;

		if (!t->answered)
			continue;
		if (!t->message_sent) {
			struct msg m = { .id = MSG_FILE_ANSWER,
					 .file_answer = { .id = t->id,
							  .status = (uint64_t)t->status,
							  .size = t->size } };

			if (t->memory)
				m = (struct msg){ .id = MSG_MEMORY_ANSWER,
						  .memory_answer = {
							  .id = t->id,
							  .status = (uint64_t)t->status,
							  .lengths = { .data = t->lengths,
								       .len = t->pieces },
							  .bytes = buf_span(&t->bytes) } };
			r = stream_put(&f->out, &m);
			t->message_sent = r == 0;
		}
		if (!r && t->fd >= 0)
			r = fdlane_send(f->lane, t->id, t->fd);
		if (r)
			break;
		ticket_free(f, t);
	}
	int r = stream_flush(&f->out);
	return r == -EAGAIN || r == -ENOTCONN ? 0 : r;
}

/* As in rowsrv.c: -ENOMEM, and the rest waits for another call. */
static int take_message(struct filesrv *f)
{
	struct msg m;
	int v = f->message.len ? stream_feed(&f->in, buf_span(&f->message)) : 0;

	if (v != -ENOMEM)
		buf_reset(&f->message);
	while (!v) {
		v = stream_next(&f->in, &m);
		if (!v && !take(f, &m))
			v = STREAM_MALFORMED;
	}
	f->halted = v == -ENOMEM;
	if (f->halted)
		return v;
	if (v != STREAM_AGAIN) {
		f->dropped = true;
		bus_drop_peer(f->bus);
	}
	return 0;
}

int filesrv_run(struct filesrv *f)
{
	const int lane = fdlane_poll(f->lane);
	int r = f->halted ? take_message(f) : 0;

	/* A few a call, as in rowsrv.c. */
	for (int n = 0; n < MESSAGES_AT_ONCE && !r; n++) {
		r = bus_recv(f->bus, &f->message);
		if (r == BUS_PEER_CAME) {
			stream_in_done(&f->in);
			stream_in_init(&f->in);
			stream_out_epoch(&f->out, ++f->epoch);
			f->hello_sent = f->dropped = f->lastword_sent = false;
			if (f->lastword >= 0)
				close(f->lastword);
			f->lastword = lastword_new();
			r = 0;
		} else if (r == BUS_PEER_WENT) {
			const struct lastword last = lastword_read(f->lastword);

			f->dropped = false;
			forget_all(f);
			if (last.kind != LASTWORD_NOTHING)
				f->config.peer_died(f->config.ctx, &last);
			r = 0;
		} else if (!r && !f->dropped) {
			r = take_message(f);
		}
	}
	if (r >= 0)
		r = transmit(f);
	return r ? r : lane;
}
