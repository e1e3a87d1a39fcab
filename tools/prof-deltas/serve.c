// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/lastword.h"
#include "common/stream.h"
#include "tools/prof-deltas/extract.h"
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
	struct bus *bus;
	struct fdlane *lane;
	int life_fd;
	struct half half[2 * HALVES];
	unsigned waiting_fds, waiting_requests;
	struct stream_in in;
	struct stream_out out;
	struct buf message;
	bool peer_gone;
	/* Not on the stack, of which a profiler copies but the top. */
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

static int send_batch(void *ctx, struct span batch)
{
	struct serve *s = ctx;
	int r = -ETIMEDOUT;

	for (unsigned i = 0; i < SEND_TRIES && r == -ETIMEDOUT; i++) {
		r = bus_send_wait(s->bus, batch, SEND_WAIT_MS);
		if (r == -ETIMEDOUT && life_ended(s->life_fd))
			return -ENOTCONN;
	}
	return r;
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
	return stream_put(&s->out, &m);
}

static int send_rules(struct serve *s, uint64_t id, const struct rows_rules *rules)
{
	for (uint32_t at = 0; at < rules->n; at += CHUNK_RULES) {
		uint32_t n = rules->n - at < CHUNK_RULES ? rules->n - at : CHUNK_RULES;
		struct span bytes = { .data = (const uint8_t *)&rules->rule[at],
				      .len = n * sizeof(*rules->rule) };
		struct msg m = { .id = MSG_ROWS_RULES, .rows_rules = { .id = id, .rules = bytes } };
		int r = stream_put(&s->out, &m);

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
			int r = stream_put(&s->out, &m);

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
			r = stream_put(&s->out, &end);
	}
	rows_done(&rows);
	lastword_back(former);
	return r ? r : stream_flush(&s->out);
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
		int r = fdlane_recv(s->lane, &id, &fd);

		if (r == -EAGAIN)
			return 0;
		if (r == -ENOTCONN) {
			s->peer_gone = true;
			return 0;
		}
		if (r == -EBADMSG)
			fd = -1;
		else if (r < 0)
			return r;
		if (id == LASTWORD_LANE_ID && fd >= 0)
			(void)lastword_take(fd);
		else
			descriptor_came(s, id, fd);
	}
	return 0;
}

static int take_messages(struct serve *s)
{
	struct msg m;

	for (;;) {
		int r = stream_next(&s->in, &m);

		s->in.new_epoch = false;
		if (r == STREAM_AGAIN)
			return 0;
		if (r == STREAM_SCHEMA)
			return SERVE_SCHEMA;
		if (r == STREAM_MALFORMED)
			return SERVE_MALFORMED;
		if (r < 0)
			return r;
		if (m.id == MSG_HELLO && m.hello.schema != msg_schema_hash())
			return SERVE_SCHEMA;
		if (m.id == MSG_ROWS_REQUEST)
			request_came(s, m.rows_request.id);
	}
}

static int drain_bus(struct serve *s)
{
	while (s->waiting_requests < HALVES) {
		int r = bus_recv(s->bus, &s->message);

		if (r == BUS_EMPTY)
			return 0;
		if (r == BUS_PEER_CAME)
			continue;
		if (r == BUS_PEER_WENT) {
			s->peer_gone = true;
			return 0;
		}
		if (r < 0)
			return r;
		r = stream_feed(&s->in, buf_span(&s->message));
		if (!r)
			r = take_messages(s);
		if (r)
			return r;
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

static int loop(struct serve *s)
{
	struct msg hello = { .id = MSG_HELLO,
			     .hello = { .schema = msg_schema_hash(),
					.kind = STREAM_RAW,
					.producer = STR_LIT("prof-deltas") } };
	int r = stream_put(&s->out, &hello);

	if (!r)
		r = stream_flush(&s->out);
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
			{ .fd = bus_fd(s->bus), .events = POLLIN },
			{ .fd = fdlane_fd(s->lane), .events = POLLIN },
			{ .fd = s->life_fd, .events = POLLIN },
		};

		if (poll(p, sizeof(p) / sizeof(p[0]), wait_ms) < 0 && errno != EINTR)
			r = -errno;
	}
	/* Who does not want an answer any more is not an error. */
	return r == -ENOTCONN ? 0 : r;
}

int serve(struct bus *bus, struct fdlane *lane, int life_fd)
{
	struct serve *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->bus = bus;
	s->lane = lane;
	s->life_fd = life_fd;
	for (unsigned i = 0; i < 2 * HALVES; i++)
		s->half[i].fd = -1;
	stream_in_init(&s->in);
	stream_out_init(&s->out, BATCH_MAX, send_batch, s);
	stream_out_epoch(&s->out, clock_mono_ns());
	r = loop(s);
	for (unsigned i = 0; i < 2 * HALVES; i++)
		half_free(s, &s->half[i]);
	stream_in_done(&s->in);
	stream_out_done(&s->out);
	buf_done(&s->message);
	free(s);
	return r;
}
