/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "common/base/clock.h"
#include "common/walk/tables.h"
#include "common/wire/peer.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/peers/rowsrv.h"

#define IN_FLIGHT 16
#define HELD_MAX 256 /* descriptors of waiting files; others are reopened in their turn */
#define BATCHES_AT_ONCE 8
#define DEADLINE_NS 60000000000ull /* per file: LASTWORD_SLOW_S on a busy host */
#define NAME_MAX_BYTES 256

struct request {
	uint64_t id;
	uint16_t slot;
	uint32_t serial; /* of the slot, which may be another file's when the answer comes */
	int fd;		 /* until it is sent */
	struct quarantine_key of;
	bool message_sent;
	bool began; /* the extractor has begun to answer */
	bool alone; /* an extractor died on it */
	uint32_t name_len;
	int spare_fd; /* for repeating the request after a death */
	struct request *prev, *next;
	char name[NAME_MAX_BYTES];
};

struct rowsrv {
	struct rowsrv_config config;
	struct peer *peer;
	uint64_t next_id;
	struct request *waiting, *outstanding;
	unsigned in_flight, held;
	uint64_t moved_ns; /* when the extractor finished one of them, or got the first */
	/* Requests whose turn has come without a descriptor. */
	struct unopened {
		uint16_t slot;
		uint32_t serial;
	} unopened[IN_FLIGHT];
	unsigned unopened_count;
	struct rowsrv_figures figures;
};

static void request_free(struct request *q)
{
	closing_give(q->fd);
	closing_give(q->spare_fd);
	free(q);
}

int rowsrv_new(const struct rowsrv_config *c, struct rowsrv **ret)
{
	struct rowsrv *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->config = *c;
	const struct peer_config peer = { .route = BUS_ROWS,
					  .run_dir = c->run_dir,
					  .uid = c->peer,
					  .producer = "prof-bpf",
					  .batch_max = 64 << 10,
					  .batches_at_once = BATCHES_AT_ONCE };
	const int e = peer_listen(&peer, &r->peer);

	if (e) {
		rowsrv_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

void rowsrv_free(struct rowsrv *r)
{
	struct request *q, *next;

	if (!r)
		return;
	DL_FOREACH_SAFE(r->waiting, q, next)
		request_free(q);
	DL_FOREACH_SAFE(r->outstanding, q, next)
		request_free(q);
	peer_free(r->peer);
	free(r);
}

int rowsrv_bus_fd(const struct rowsrv *r)
{
	return peer_bus_fd(r->peer);
}

int rowsrv_lane_fd(const struct rowsrv *r)
{
	return peer_lane_fd(r->peer);
}

bool rowsrv_connected(const struct rowsrv *r)
{
	return peer_connected(r->peer);
}

bool rowsrv_idle(const struct rowsrv *r)
{
	return !r->waiting && !r->outstanding && !r->unopened_count;
}

void rowsrv_figures(const struct rowsrv *r, struct rowsrv_figures *ret)
{
	*ret = r->figures;
}

int rowsrv_request(struct rowsrv *r, uint16_t slot, int fd, const struct quarantine_key *of,
		   struct str name)
{
	struct request *q = calloc(1, sizeof(*q));

	if (!q) {
		closing_give(fd);
		r->figures.full++;
		tables_file_full(r->config.tables, slot);
		return -ENOMEM;
	}
	q->id = ++r->next_id;
	q->slot = slot;
	q->serial = tables_file_serial(r->config.tables, slot);
	if (r->held >= HELD_MAX) {
		closing_give(fd);
		fd = -1;
	}
	q->fd = fd;
	q->spare_fd = -1;
	r->held += fd >= 0;
	q->of = *of;
	q->alone = quarantine_deaths(r->config.quarantine, QUARANTINE_ROWS, of) > 0;
	q->name_len = name.len < sizeof(q->name) ? name.len : (uint32_t)sizeof(q->name);
	if (q->name_len)
		memcpy(q->name, name.data, q->name_len);
	DL_APPEND(r->waiting, q);
	r->figures.asked++;
	return 0;
}

bool rowsrv_take_unopened(struct rowsrv *r, uint16_t *ret_slot)
{
	while (r->unopened_count) {
		const struct unopened u = r->unopened[0];

		memmove(r->unopened, r->unopened + 1, --r->unopened_count * sizeof(u));
		if (tables_file_serial(r->config.tables, u.slot) == u.serial) {
			*ret_slot = u.slot;
			return true;
		}
	}
	return false;
}

static void finish(struct rowsrv *r, struct request *q)
{
	DL_DELETE(r->outstanding, q);
	r->in_flight--;
	r->moved_ns = clock_mono_ns();
	request_free(q);
}

/* The file gets no rows. */
static void give_up(struct rowsrv *r, struct request *q)
{
	if (tables_file_serial(r->config.tables, q->slot) == q->serial) {
		tables_rows_abort(r->config.tables, q->slot);
		tables_file_none(r->config.tables, q->slot);
	}
	r->figures.quarantined++;
}

static void blame(struct rowsrv *r, struct request *q, enum lastword_end end, uint64_t now_ns)
{
	const enum quarantine_verdict v = quarantine_blame(r->config.quarantine, QUARANTINE_ROWS,
							   &q->of, end, now_ns);

	q->alone = true;
	r->config.on_death(r->config.ctx, (struct str){ .data = q->name, .len = q->name_len },
			   &q->of, end, v);
}

static struct request *find(struct rowsrv *r, uint64_t id)
{
	struct request *q;

	DL_FOREACH(r->outstanding, q) {
		if (q->id == id)
			return q;
	}
	return NULL;
}

/* The request that the extractor was working on by its last word. NULL: none, and no file is to
 * blame: the extractor names each file before it parses it, and may end for other reasons. */
static struct request *guilty(struct rowsrv *r, const struct lastword *last)
{
	return last->kind == LASTWORD_FILE ? find(r, last->id) : NULL;
}

/* The extractor is gone: repeats its requests. If we dropped it, drop() has already blamed the
 * file. */
static void lost_peer(struct rowsrv *r)
{
	const struct lastword last = peer_lastword(r->peer);
	const uint64_t now_ns = clock_mono_ns();
	struct request *q, *next;

	q = peer_dropped(r->peer) ? NULL : guilty(r, &last);
	if (q)
		blame(r, q, last.end, now_ns);
	DL_FOREACH_SAFE(r->outstanding, q, next) {
		if (tables_file_serial(r->config.tables, q->slot) == q->serial)
			tables_rows_abort(r->config.tables, q->slot);
		if (quarantine_check(r->config.quarantine, QUARANTINE_ROWS, &q->of, now_ns)) {
			give_up(r, q);
			finish(r, q);
			continue;
		}
		/* Without a descriptor it will be requested again with one. */
		closing_give(q->fd);
		q->fd = q->spare_fd;
		q->spare_fd = -1;
		q->message_sent = q->began = false;
		DL_DELETE(r->outstanding, q);
		r->in_flight--;
		r->held += q->fd >= 0;
		DL_PREPEND(r->waiting, q);
	}
}

/* Drops the extractor for what it did with a file: q, or else the one that it was working on. */
static void drop(struct rowsrv *r, struct request *q, enum lastword_end end, uint64_t now_ns)
{
	const struct lastword last = peer_lastword(r->peer);

	if (!q)
		q = guilty(r, &last);
	if (q)
		blame(r, q, end, now_ns);
	peer_drop(r->peer);
}

/* Takes one message of the extractor. False: it broke the rules and loses the pipe; *ret_about is
 * the request concerned, or NULL. */
static bool take(struct rowsrv *r, const struct msg *m, struct request **ret_about)
{
	struct tables *t = r->config.tables;
	uint64_t id = m->rows_end.id; /* the first field of all four */
	int v = 0;

	struct request *q = find(r, id);

	*ret_about = q;
	if (!q)
		return false;
	if (tables_file_serial(t, q->slot) != q->serial)
		q->slot = 0;
	switch (m->id) {
	case MSG_ROWS_BEGIN:
		if (q->began)
			return false;
		q->began = true;
		if (m->rows_begin.status != ROWS_OK) {
			if (m->rows_begin.status <
			    sizeof(r->figures.refused) / sizeof(r->figures.refused[0]))
				r->figures.refused[m->rows_begin.status]++;
			tables_file_none(t, q->slot);
			finish(r, q);
			return true;
		}
		if (r->config.rows_come)
			r->config.rows_come(r->config.ctx, tables_rows_bytes(m->rows_begin.span,
									     m->rows_begin.rows));
		v = tables_rows_begin(t, q->slot, m->rows_begin.base, m->rows_begin.span,
				      m->rows_begin.rows, m->rows_begin.rules);
		break;
	case MSG_ROWS_RULES:
		if (m->rows_rules.rules.len % sizeof(struct unwind_rule))
			return false;
		v = tables_rows_rules(t, q->slot, (const void *)m->rows_rules.rules.data,
				      m->rows_rules.rules.len / sizeof(struct unwind_rule));
		break;
	case MSG_ROWS_CHUNK:
		if (m->rows_chunk.rows.len % sizeof(struct unwind_row_wire))
			return false;
		v = tables_rows_chunk(t, q->slot, (const void *)m->rows_chunk.rows.data,
				      m->rows_chunk.rows.len / sizeof(struct unwind_row_wire));
		break;
	default:
		v = tables_rows_end(t, q->slot);
		if (!v) {
			r->figures.answered++;
			finish(r, q);
		}
		break;
	}
	if (v == TABLES_BAD_ROWS && tables_file_state(t, q->slot) != FILE_FREE) {
		r->figures.refused[0]++;
		return false;
	}
	if (v) {
		const bool full = v == TABLES_FULL || v == -ENOMEM;

		/* No room, no memory, or nobody maps the file any more. So it has no rows, for now
		 * or for good, and the rest of the answer is ignored. */
		r->figures.full += full;
		tables_rows_abort(t, q->slot);
		if (full)
			tables_file_full(t, q->slot);
		else
			tables_file_none(t, q->slot);
		q->slot = 0;
		if (m->id == MSG_ROWS_END)
			finish(r, q);
	}
	return true;
}

/* 0, -errno. */
static int receive(struct rowsrv *r)
{
	for (;;) {
		struct request *about = NULL;
		struct msg m;
		const int e = peer_recv(r->peer, &m);

		switch (e) {
		case 0:
			if (!take(r, &m, &about))
				drop(r, about, LASTWORD_CRASH, clock_mono_ns());
			break;
		case PEER_UNRULY:
		case PEER_SCHEMA:
			drop(r, NULL, LASTWORD_CRASH, clock_mono_ns());
			break;
		case PEER_CAME:
			break;
		case PEER_WENT:
			lost_peer(r);
			break;
		case PEER_EMPTY:
			return 0;
		default:
			return e;
		}
	}
}

static int transmit(struct rowsrv *r, uint64_t now_ns)
{
	struct request *q;

	int e = peer_greet(r->peer);

	/* It gets no file before it can tell which one it is working on. */
	if (e || !peer_has_page(r->peer))
		return e == -ENOTCONN ? 0 : e;
	/* A file that an extractor died on is requested alone. */
	bool alone = r->outstanding && r->outstanding->alone;
	while (r->waiting && r->in_flight < IN_FLIGHT && r->unopened_count < IN_FLIGHT && !alone) {
		q = r->waiting;
		if (q->alone && r->in_flight)
			break;
		DL_DELETE(r->waiting, q);
		if (quarantine_check(r->config.quarantine, QUARANTINE_ROWS, &q->of, now_ns)) {
			r->held -= q->fd >= 0;
			give_up(r, q);
			request_free(q);
			continue;
		}
		if (q->fd < 0) {
			r->unopened[r->unopened_count++] = (struct unopened){ .slot = q->slot,
									      .serial = q->serial };
			r->figures.asked--;
			free(q);
			continue;
		}
		r->held--;
		alone = q->alone;
		if (!r->outstanding)
			r->moved_ns = now_ns;
		DL_APPEND(r->outstanding, q);
		r->in_flight++;
		if (q->spare_fd < 0)
			q->spare_fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
	}
	DL_FOREACH(r->outstanding, q) {
		e = 0;
		if (!q->message_sent) {
			struct msg m = { .id = MSG_ROWS_REQUEST,
					 .rows_request = { .id = q->id,
							   .size = q->of.size,
							   .name = { .data = q->name,
								     .len = q->name_len } } };

			e = peer_put(r->peer, &m);
			q->message_sent = e == 0;
		}
		if (!e && q->fd >= 0) {
			e = peer_send_file(r->peer, q->id, q->fd);
			if (e == 0) {
				closing_give(q->fd);
				q->fd = -1;
			}
		}
		if (e)
			break;
	}
	e = peer_flush(r->peer);
	return e == -EAGAIN || e == -ENOTCONN ? 0 : e;
}

int rowsrv_run(struct rowsrv *r, uint64_t now_ns)
{
	/* A lane that cannot take a peer, for lack of descriptors, must not block the rest. */
	const int lane = peer_poll_lane(r->peer);
	int e = receive(r);

	if (e)
		return e;
	if (r->outstanding && !peer_dropped(r->peer) && now_ns > r->moved_ns &&
	    now_ns - r->moved_ns > DEADLINE_NS)
		drop(r, NULL, LASTWORD_SLOW, now_ns);
	e = transmit(r, now_ns);
	return e ? e : lane;
}
