/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/file_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "common/wire/peer/peer.h"
#include "tools/prof-bpf/open/closing.h"

#define BATCHES_AT_ONCE 32

struct ticket {
	uint64_t number; /* our number of the request */
	uint64_t id;	 /* the peer's id of the request */
	bool answered, message_sent;
	int fd, status;
	uint64_t size, place;
	bool memory; /* the answer contains bytes */
	struct buf bytes;
	uint64_t *lengths;
	uint32_t pieces;
	struct ticket *prev, *next;
};

struct file_server {
	struct file_server_config config;
	struct peer *peer;
	uint64_t next_ticket;
	struct ticket places[FILE_SERVER_OPEN_MAX];
	struct ticket *tickets, *unused; /* lists of elements */
};

int file_server_new(const struct file_server_config *c, struct file_server **ret)
{
	struct file_server *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->config = *c;
	for (unsigned i = 0; i < FILE_SERVER_OPEN_MAX; i++)
		LL_PREPEND(f->unused, &f->places[i]);
	const struct peer_config peer = { .route = BUSROUTE_FILES,
					  .run_dir = c->run_dir,
					  .uid = c->peer,
					  .producer = "prof-bpf",
					  /* One answer per batch: this route's messages are
					   * small. */
					  .batch_max = 1024,
					  .batches_at_once = BATCHES_AT_ONCE };
	const int r = peer_listen(&peer, &f->peer);

	if (r) {
		file_server_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

static void ticket_free(struct file_server *f, struct ticket *t)
{
	DL_DELETE(f->tickets, t);
	closing_give(t->fd);
	buf_done(&t->bytes);
	free(t->lengths);
	LL_PREPEND(f->unused, t);
}

static void forget_all(struct file_server *f)
{
	while (f->tickets)
		ticket_free(f, f->tickets);
}

void file_server_free(struct file_server *f)
{
	if (!f)
		return;
	forget_all(f);
	peer_free(f->peer);
	free(f);
}

bool file_server_idle(const struct file_server *f)
{
	return !f->tickets;
}

int file_server_bus_fd(const struct file_server *f)
{
	return peer_bus_fd(f->peer);
}

int file_server_lane_fd(const struct file_server *f)
{
	return peer_lane_fd(f->peer);
}

/* Takes one message. Returns false if the peer broke the rules. */
static bool take(struct file_server *f, const struct msg *m)
{
	if (m->id == MSG_RUNTIME)
		return f->config.take_runtime(f->config.ctx, &m->runtime);
	if (!f->unused)
		return false;
	struct ticket *t = f->unused;
	LL_DELETE(f->unused, t);
	*t = (struct ticket){ .number = ++f->next_ticket,
			      .id = m->file_request.id, /* id is the first field of all requests */
			      .fd = -1 };
	DL_APPEND(f->tickets, t);
	switch (m->id) {
	case MSG_FILE_REQUEST:
		f->config.want_file(f->config.ctx, t->number, &m->file_request);
		break;
	case MSG_DEBUG_REQUEST:
		f->config.want_debug(f->config.ctx, t->number, &m->debug_request);
		break;
	case MSG_JIT_REQUEST:
		f->config.want_jit(f->config.ctx, t->number, &m->jit_request);
		break;
	case MSG_MEMORY_REQUEST:
		f->config.want_memory(f->config.ctx, t->number, &m->memory_request);
		break;
	default: /* this route allows no other message */
		ticket_free(f, t);
		return false;
	}
	return true;
}

/* Returns the pending ticket. NULL: the peer that made the request is gone. */
static struct ticket *find_ticket(struct file_server *f, uint64_t number)
{
	struct ticket *t;

	DL_FOREACH(f->tickets, t) {
		if (t->number == number && !t->answered)
			break;
	}
	return t;
}

void file_server_memory(struct file_server *f, uint64_t ticket, int status, struct buf *bytes,
			struct msg_list lengths)
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

void file_server_answer(struct file_server *f, uint64_t ticket, int fd, int status, uint64_t size,
			uint64_t place)
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
	t->place = place;
}

void file_server_grant(struct file_server *f, uint64_t bytes)
{
	peer_grant(f->peer, bytes);
}

void file_server_rest(struct file_server *f, uint64_t ms)
{
	peer_rest(f->peer, ms);
}

uint64_t file_server_wanted(const struct file_server *f)
{
	return peer_wanted(f->peer);
}

static int transmit(struct file_server *f)
{
	struct ticket *t, *next;
	int r = peer_greet(f->peer);

	if (r)
		return r == -ENOTCONN ? 0 : r;
	DL_FOREACH_SAFE(f->tickets, t, next) {
		if (!t->answered)
			continue;
		r = 0;
		if (!t->message_sent) {
			struct msg m = { .id = MSG_FILE_ANSWER,
					 .file_answer = { .id = t->id,
							  .status = (uint64_t)t->status,
							  .size = t->size,
							  .place = t->place } };

			if (t->memory)
				m = (struct msg){ .id = MSG_MEMORY_ANSWER,
						  .memory_answer = {
							  .id = t->id,
							  .status = (uint64_t)t->status,
							  .lengths = { .data = t->lengths,
								       .len = t->pieces },
							  .bytes = buf_span(&t->bytes) } };
			r = peer_put(f->peer, &m);
			t->message_sent = r == 0;
		}
		if (!r && t->fd >= 0)
			r = peer_send_file(f->peer, t->id, t->fd);
		if (r)
			break;
		ticket_free(f, t);
	}
	r = peer_flush(f->peer);
	return r == -EAGAIN || r == -ENOTCONN ? 0 : r;
}

/* Drops all requests of a peer that is gone. */
static void lost_peer(struct file_server *f)
{
	const struct lastword last = peer_lastword(f->peer);

	forget_all(f);
	if (last.kind != LASTWORD_NOTHING)
		f->config.peer_died(f->config.ctx, &last);
}

/* Takes all waiting messages. Returns 0 or -errno. */
static int receive(struct file_server *f)
{
	for (;;) {
		struct msg m;
		const int r = peer_recv(f->peer, &m);

		switch (r) {
		case 0:
			if (!take(f, &m))
				peer_drop(f->peer);
			break;
		case PEER_UNRULY:
		case PEER_SCHEMA:
			peer_drop(f->peer);
			break;
		case PEER_CAME:
			break;
		case PEER_WENT:
			lost_peer(f);
			break;
		case PEER_EMPTY:
			return 0;
		default:
			return r;
		}
	}
}

int file_server_run(struct file_server *f)
{
	/* If the lane cannot accept a peer for lack of descriptors, continue with the rest. */
	const int lane = peer_poll_lane(f->peer);
	int r = receive(f);

	if (!r)
		r = transmit(f);
	return r ? r : lane;
}
