/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-deltas/serve.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/cell/deploy.h"
#include "common/cell/dial.h"
#include "common/rows/extract/extract.h"
#include "common/wire/pairs.h"
#include "common/wire/peer/peer.h"

#define SEND_WAIT_MS 500
#define SEND_TRIES 60
#define BATCH_MAX (256u << 10)
#define CHUNK_ROWS 16384
#define CHUNK_RULES 8192

struct serve {
	struct peer *peer;
	int life_fd;
	struct pairs pairs; /* requests and their files */
	bool peer_gone;
	/* Not on the stack: profilers copy only the top of the stack. */
	struct unwind_row_wire chunk[CHUNK_ROWS];
};

/* --- sending --- */

static int patience(void *ctx, unsigned waits)
{
	const struct serve *s = ctx;

	if (deploy_life_over(s->life_fd, NULL))
		return -ENOTCONN;
	return waits < SEND_TRIES ? 0 : -ETIMEDOUT;
}

static int send_begin(struct serve *s, uint64_t id, enum msg_rows_status status,
		      const struct rows *rows, uint64_t cpu_ns)
{
	struct msg m = { .id = MSG_ROWS_BEGIN,
			 .rows_begin = { .id = id, .status = status, .cpu_ns = cpu_ns } };

	if (status == MSG_ROWS_OK) {
		m.rows_begin.base = rows->base;
		m.rows_begin.span = rows->span;
		m.rows_begin.rows = rows->count;
		m.rows_begin.rules = rows->rules.n;
	}
	return peer_put(s->peer, &m);
}

static int send_rules(struct serve *s, uint64_t id, const struct rows_rules *rules)
{
	for (uint32_t at = 0; at < rules->n; at += CHUNK_RULES) {
		uint32_t n = rules->n - at < CHUNK_RULES ? rules->n - at : CHUNK_RULES;
		struct span bytes = { .data = (const uint8_t *)&rules->rule[at],
				      .len = n * sizeof(*rules->rule) };
		struct msg m = { .id = MSG_ROWS_RULES, .rows_rules = { .id = id, .rules = bytes } };
		int r = peer_put(s->peer, &m);

		if (r)
			return r;
	}
	return 0;
}

static int send_rows(struct serve *s, uint64_t id, const struct rows *rows)
{
	struct unwind_row_wire *chunk = s->chunk;
	struct rows_cursor c;
	size_t n = 0;
	bool more;

	rows_cursor_init(&c, rows);
	do {
		more = rows_next(&c, &chunk[n]);
		n += more;
		if (n == CHUNK_ROWS || (!more && n)) {
			struct span bytes = { .data = (const uint8_t *)chunk,
					      .len = n * sizeof(*chunk) };
			struct msg m = { .id = MSG_ROWS_CHUNK,
					 .rows_chunk = { .id = id, .rows = bytes } };
			int r = peer_put(s->peer, &m);

			if (r)
				return r;
			n = 0;
		}
	} while (more);
	return 0;
}

static enum msg_rows_status status_of(int r, const struct rows *rows, const struct extract *e)
{
	if (r == -ENOMEM)
		return MSG_ROWS_TOO_LARGE;
	if (r < 0)
		return MSG_ROWS_UNREADABLE;
	if (r > 0)
		return (enum msg_rows_status)r;
	return rows->count ? MSG_ROWS_OK : e->truncated ? MSG_ROWS_MALFORMED : MSG_ROWS_NONE;
}

/* Answers a request, and closes fd; -1: the descriptor did not come. */
static int answer(struct serve *s, uint64_t id, int fd)
{
	enum msg_rows_status status = MSG_ROWS_UNREADABLE;
	struct extract e;
	struct rows rows;
	int r;

	/* Report the file until its rows are freed: memory that parsing corrupted may crash only
	 * then. */
	const uint64_t former = lastword_begin(LASTWORD_FILE, id);
	const uint64_t began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	rows_init(&rows);
	rows.stopped = lastword_is_stopped;
	if (fd >= 0) {
		r = extract_rows(fd, -1, &rows, &e);
		close(fd);
		status = status_of(r, &rows, &e);
	}
	r = send_begin(s, id, status, &rows, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns);
	if (!r && status == MSG_ROWS_OK) {
		r = send_rules(s, id, &rows.rules);
		if (!r)
			r = send_rows(s, id, &rows);
		if (!r) {
			const uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns;

			r = peer_put(s->peer,
				     &(struct msg){ .id = MSG_ROWS_END,
						    .rows_end = { .id = id, .cpu_ns = cpu_ns } });
		}
	}
	rows_done(&rows);
	lastword_back(former);
	return r ? r : peer_flush(s->peer);
}

/* --- receiving --- */

static int drain_lane(struct serve *s)
{
	uint64_t id;
	int fd;

	while (!pairs_full(&s->pairs)) {
		int r = peer_recv_file(s->peer, &id, &fd);

		if (r == -EAGAIN)
			return 0;
		if (r == -ENOTCONN) {
			s->peer_gone = true;
			return 0;
		}
		if (r)
			return r;
		pairs_file(&s->pairs, id, fd, clock_mono_ns());
	}
	return 0;
}

static int drain_bus(struct serve *s)
{
	struct msg m;

	while (!pairs_full(&s->pairs)) {
		int r = peer_recv(s->peer, &m);

		switch (r) {
		case 0:
			/* There is no other message. */
			pairs_message(&s->pairs, m.rows_request.id, true, clock_mono_ns());
			break;
		case PEER_CAME:
			break;
		case PEER_WENT:
			s->peer_gone = true;
			return 0;
		case PEER_EMPTY:
			return 0;
		case PEER_UNRULY:
			return SERVE_MALFORMED;
		case PEER_SCHEMA:
			return SERVE_SCHEMA;
		default:
			return r;
		}
	}
	return 0;
}

/* --- the loop --- */

/* Answers one request, if there is one. *ret_did: it did something, so there may be more. */
static int work(struct serve *s, bool *ret_did)
{
	struct pair p;

	*ret_did = pairs_take(&s->pairs, clock_mono_ns(), &p);
	return *ret_did && p.has_message ? answer(s, p.id, p.fd) : 0;
}

int serve_run(struct serve *s)
{
	int r = peer_flush(s->peer); /* sends the hello */

	while (!r) {
		bool did;

		r = drain_lane(s);
		if (!r)
			r = drain_bus(s);
		if (r || s->peer_gone || deploy_life_over(s->life_fd, NULL))
			break;
		r = work(s, &did);
		if (r || did)
			continue;

		struct pollfd p[] = {
			{ .fd = peer_bus_fd(s->peer), .events = POLLIN },
			{ .fd = peer_lane_fd(s->peer), .events = POLLIN },
			{ .fd = s->life_fd, .events = POLLIN },
		};

		const int wait_ms = pairs_wait_ms(&s->pairs, clock_mono_ns());

		if (poll(p, sizeof(p) / sizeof(p[0]), wait_ms) < 0 && errno != EINTR)
			r = -errno;
	}
	/* A peer that disconnects before it got the answer is not an error. */
	return r == -ENOTCONN ? 0 : r;
}

int serve_new(const struct dial *d, struct serve **ret)
{
	struct serve *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->life_fd = d->deploy->life_fd;
	const struct peer_config peer = { .route = BUSROUTE_ROWS,
					  .producer = "prof-deltas",
					  .batch_max = BATCH_MAX,
					  .send_wait_ms = SEND_WAIT_MS,
					  .patience = patience,
					  .ctx = s };
	const int r = dial_peer(d, peer, &s->peer);

	if (r) {
		serve_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void serve_free(struct serve *s)
{
	if (!s)
		return;
	pairs_done(&s->pairs);
	peer_free(s->peer);
	free(s);
}
