// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/rows/extract.h"
#include "common/wire/peer.h"
#include "tools/prof-deltas/serve.h"

#define HALVES 64 /* requests without descriptor, and descriptors without request, kept at most */
#define HALF_WAIT_NS 1000000000ull
#define SEND_WAIT_MS 500
#define SEND_TRIES 60
#define BATCH_MAX (256u << 10)
#define CHUNK_ROWS 16384
#define CHUNK_RULES 8192

struct half {
	uint64_t id, since_ns;
	int fd; /* owned; -1: not there, or will not come */
	bool used, requested, fd_seen;
};

struct serve {
	struct peer *peer;
	int life_fd;
	struct half half[2 * HALVES];
	unsigned waiting_fds, waiting_requests;
	bool peer_gone;
	/* Not on the stack: a profiler copies only the top of it. */
	struct unwind_row_wire chunk[CHUNK_ROWS];
};

/* --- life --- */

static bool life_ended(int life_fd)
{
	struct pollfd p = { .fd = life_fd, .events = POLLIN };
	char byte;

	if (life_fd < 0)
		return false;
	/* 'S' (stop sampling) is not for us: rows are wanted as long as prof-bpf lives. */
	while (poll(&p, 1, 0) > 0) {
		ssize_t n = read(life_fd, &byte, 1);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return true;
	}
	return false;
}

/* --- sending --- */

static int patience(void *ctx, unsigned waits)
{
	const struct serve *s = ctx;

	if (life_ended(s->life_fd))
		return -ENOTCONN;
	return waits < SEND_TRIES ? 0 : -ETIMEDOUT;
}

static int send_begin(struct serve *s, uint64_t id, enum rows_status status,
		      const struct rows *rows)
{
	struct msg m = { .id = MSG_ROWS_BEGIN, .rows_begin = { .id = id, .status = status } };

	if (status == ROWS_OK) {
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

static enum rows_status status_of(int r, const struct rows *rows, const struct extract *e)
{
	if (r == -ENOMEM)
		return ROWS_TOO_LARGE;
	if (r < 0)
		return ROWS_UNREADABLE;
	if (r > 0)
		return (enum rows_status)r;
	return rows->count ? ROWS_OK : e->truncated ? ROWS_MALFORMED : ROWS_NONE;
}

/* fd is taken; -1: it did not come. */
static int answer(struct serve *s, uint64_t id, int fd)
{
	enum rows_status status = ROWS_UNREADABLE;
	struct extract e;
	struct rows rows;
	int r;

	/* To the end of what was made of it: what parsing broke may only show there. */
	const uint64_t former = lastword_begin(LASTWORD_FILE, id);

	rows_init(&rows);
	if (fd >= 0) {
		r = extract_rows(fd, -1, &rows, &e);
		close(fd);
		status = status_of(r, &rows, &e);
	}
	r = send_begin(s, id, status, &rows);
	if (!r && status == ROWS_OK) {
		struct msg end = { .id = MSG_ROWS_END, .rows_end = { .id = id } };

		r = send_rules(s, id, &rows.rules);
		if (!r)
			r = send_rows(s, id, &rows);
		if (!r)
			r = peer_put(s->peer, &end);
	}
	rows_done(&rows);
	lastword_back(former);
	return r ? r : peer_flush(s->peer);
}

/* --- receiving --- */

static void half_free(struct serve *s, struct half *h)
{
	if (h->fd >= 0)
		close(h->fd);
	s->waiting_fds -= h->fd_seen && !h->requested;
	s->waiting_requests -= h->requested && !h->fd_seen;
	*h = (struct half){ .fd = -1 };
}

/* The half of this id, or a new one. There is room: each kind is taken in only below HALVES. */
static struct half *half_get(struct serve *s, uint64_t id)
{
	struct half *unused = NULL;

	for (unsigned i = 0; i < 2 * HALVES; i++) {
		if (s->half[i].used && s->half[i].id == id)
			return &s->half[i];
		if (!s->half[i].used && !unused)
			unused = &s->half[i];
	}
	if (unused)
		*unused = (struct half){
			.used = true, .id = id, .fd = -1, .since_ns = clock_mono_ns()
		};
	return unused;
}

static void descriptor_came(struct serve *s, uint64_t id, int fd)
{
	struct half *h = half_get(s, id);

	if (!h || h->fd_seen) {
		if (fd >= 0)
			close(fd);
		return;
	}
	h->fd = fd;
	h->fd_seen = true;
	if (h->requested)
		s->waiting_requests--;
	else
		s->waiting_fds++;
}

static void request_came(struct serve *s, uint64_t id)
{
	struct half *h = half_get(s, id);

	if (!h || h->requested)
		return;
	h->requested = true;
	if (h->fd_seen)
		s->waiting_fds--;
	else
		s->waiting_requests++;
}

static int drain_lane(struct serve *s)
{
	uint64_t id;
	int fd;

	while (s->waiting_fds < HALVES) {
		int r = peer_recv_file(s->peer, &id, &fd);

		if (r == -EAGAIN)
			return 0;
		if (r == -ENOTCONN) {
			s->peer_gone = true;
			return 0;
		}
		if (r)
			return r;
		descriptor_came(s, id, fd);
	}
	return 0;
}

static int drain_bus(struct serve *s)
{
	struct msg m;

	while (s->waiting_requests < HALVES) {
		int r = peer_recv(s->peer, &m);

		switch (r) {
		case 0:
			request_came(s, m.rows_request.id); /* there is no other message */
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

/* Answers one request that has both halves, or whose descriptor did not come in time. *ret_did:
 * there was one. *ret_wait_ms: until the next half is too old. */
static int work(struct serve *s, bool *ret_did, int *ret_wait_ms)
{
	uint64_t now = clock_mono_ns();
	struct half *next = NULL;

	*ret_did = false;
	*ret_wait_ms = -1;
	for (unsigned i = 0; i < 2 * HALVES; i++) {
		struct half *h = &s->half[i];

		if (!h->used)
			continue;

		uint64_t age = now - h->since_ns;

		if (h->requested && (h->fd_seen || age >= HALF_WAIT_NS)) {
			if (!next || h->since_ns < next->since_ns)
				next = h;
		} else if (age >= HALF_WAIT_NS) {
			half_free(s, h);
		} else {
			int left_ms = (int)((HALF_WAIT_NS - age) / 1000000) + 1;

			if (*ret_wait_ms < 0 || left_ms < *ret_wait_ms)
				*ret_wait_ms = left_ms;
		}
	}
	if (!next)
		return 0;

	uint64_t id = next->id;
	int fd = next->fd;

	next->fd = -1;
	half_free(s, next);
	*ret_did = true;
	return answer(s, id, fd);
}

int serve_run(struct serve *s)
{
	int r = peer_flush(s->peer); /* the hello */

	while (!r) {
		bool did;
		int wait_ms;

		r = drain_lane(s);
		if (!r)
			r = drain_bus(s);
		if (r || s->peer_gone || life_ended(s->life_fd))
			break;
		r = work(s, &did, &wait_ms);
		if (r || did)
			continue;

		struct pollfd p[] = {
			{ .fd = peer_bus_fd(s->peer), .events = POLLIN },
			{ .fd = peer_lane_fd(s->peer), .events = POLLIN },
			{ .fd = s->life_fd, .events = POLLIN },
		};

		if (poll(p, sizeof(p) / sizeof(p[0]), wait_ms) < 0 && errno != EINTR)
			r = -errno;
	}
	/* A peer that wants no answer any more is no error. */
	return r == -ENOTCONN ? 0 : r;
}

int serve_new(const struct serve_config *c, struct serve **ret)
{
	struct serve *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->life_fd = c->life_fd;
	for (unsigned i = 0; i < 2 * HALVES; i++)
		s->half[i].fd = -1;
	const struct peer_config peer = { .route = BUS_ROWS,
					  .run_dir = c->run_dir,
					  .uid = c->peer,
					  .producer = "prof-deltas",
					  .batch_max = BATCH_MAX,
					  .send_wait_ms = SEND_WAIT_MS,
					  .patience = patience,
					  .ctx = s };
	const int r = peer_dial(&peer, c->dial_ms, &s->peer);

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
	for (unsigned i = 0; i < 2 * HALVES; i++)
		half_free(s, &s->half[i]);
	peer_free(s->peer);
	free(s);
}
