/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nng provides connected byte streams, and threads that read and write them. The pipe on top is
 * here. On the wire it is nng's pair (version 0) over ipc: eight bytes of greeting each way, then
 * messages, each a byte 1, its length (64 bits, big endian) and its bytes. We do not use nng 1.5's
 * own pipes: a single thread, its reaper, closes their sockets. If one is closed in the middle of a
 * message, the reaper can wait forever, and the process gets no further peer.
 *
 * A bus has one pipe at a time. Four operations (nng's aio) serve it: one each to take a
 * connection, to read, to write, and to wait for the greeting. Their callbacks run in nng's
 * threads, the functions of bus.h run in the tool's thread, and the lock protects all that they
 * share. When a pipe ends (LEAVING), its stream is closed, which ends its operations. When the last
 * of them has called back, the stream is freed, and the next peer may come. Only bus_free waits for
 * that.
 *
 * The code relies on these properties of nng 1.5 (src/platform/posix/posix_ipcconn.c,
 * src/core/aio.c):
 * - No callback runs within the call that starts an operation, so a caller that holds the lock may
 *   start one.
 * - An operation that begins on a stream after nng_stream_close never calls back, and one that
 *   begins while nng_aio_stop goes on calls back too late. So none is begun then.
 * - A stream whose peer is gone fails its operations, reading too, before all was read that the
 *   peer had sent. Reading again yields the rest, and then the end. So a pipe ends with the second
 *   failure.
 * - nng_aio_stop and nng_aio_cancel may still use the stream of an operation that has just called
 *   back. So they are not called for reading and writing, which end with their stream; bus_free
 *   awaits that end.
 * - A timeout of an operation may strike the next one on the same aio. So none is set, and the wait
 *   for the greeting is an operation of its own.
 * - nng_stream_free leaves the closing to the reaper, which waits for no operation there.
 */
#include "common/wire/bus/bus.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/transport/ipc/ipc.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/wire/bus/arrivals.h"

#define SCHEME "ipc://"
/* A dialer first retries every few milliseconds, for this time. */
#define DIAL_BRISK_NS 500000000ull
#define DIAL_BRISK_MS 3
#define DIAL_MS 20
#define GREETING_MS 5000 /* for a peer to send its greeting */
#define REST_MS 100	 /* pause after a failed accept, for example without free descriptors */
#define BUS_BUFFER 65536
#define BUS_PARTS 8 /* number of buffers that nng takes in one operation */
#define HEAD_SIZE 9
#define HEAD_TYPE 1

static const uint8_t greeting[8] = { 0, 'S', 'P', 0, 0, 16, 0, 0 };

struct message {
	struct message *next; /* in the queue to send */
	size_t len;
	uint8_t bytes[]; /* a message to send begins with its header */
};

enum pipe_state {
	PIPE_NONE,
	PIPE_GREETING, /* the greeting of the peer has not come yet */
	PIPE_UP,
	PIPE_LEAVING, /* its stream is closed, and its operations are ending */
};

struct bus {
	const struct busroute *route;
	bool listener;
	uid_t peer;
	nng_stream_listener *door; /* of a listener */
	nng_stream_dialer *dialer; /* of a dialer */
	nng_aio *connecting, *reading, *writing, *waiting;

	pthread_mutex_t lock; /* protects all members below */
	pthread_cond_t changed;
	bool freed; /* bus_free was called: start no operation any more */
	bool rests; /* `connecting` is a pause */

	/* The pipe. */
	enum pipe_state state;
	nng_stream *stream;
	nng_stream *next; /* the next peer's, while the pipe is LEAVING */
	uint64_t epoch;
	bool reads, writes, waits; /* which operations are running */
	bool ending;		   /* a read has failed once */
	bool deaf;		   /* a write has failed */
	bool starves;		   /* a message could not be allocated */

	/* The queue to send. */
	struct message *out, *last;
	unsigned queued;
	size_t greeted; /* bytes that were sent of the greeting, and of the first message */
	size_t sent;

	/* Bytes that were read but are no complete message yet: first `partial`, then the
	 * buffer. */
	struct message *partial;
	size_t got;
	size_t from, to;
	uint8_t buffer[BUS_BUFFER];

	uint64_t current; /* the epoch whose messages bus_recv passes on; 0: none */
	struct arrivals arrivals;
};

static int errno_of(int nng)
{
	switch (nng) {
	case 0:
		return 0;
	case NNG_ENOMEM:
		return -ENOMEM;
	case NNG_EADDRINUSE:
		return -EADDRINUSE;
	case NNG_EADDRINVAL:
	case NNG_EINVAL:
		return -EINVAL;
	case NNG_ENOENT:
		return -ENOENT;
	case NNG_EPERM:
		return -EACCES;
	case NNG_ENOFILES:
		return -EMFILE;
	case NNG_ENOSPC:
		return -ENOSPC;
	default:
		return nng & NNG_ESYSERR ? -(nng & ~NNG_ESYSERR) : -EIO;
	}
}

static unsigned depth_in(const struct bus *b)
{
	return b->listener ? b->route->from_dialer.depth : b->route->from_listener.depth;
}

static unsigned depth_out(const struct bus *b)
{
	return b->listener ? b->route->from_listener.depth : b->route->from_dialer.depth;
}

/* --- the pipe; functions that need the lock --- */

static void arrive(struct bus *b, enum bus_event event, struct message *message)
{
	arrivals_put(&b->arrivals, (struct arrival){ event, message, b->epoch });
}

static bool is_alive(const struct bus *b)
{
	return b->state == PIPE_GREETING || b->state == PIPE_UP;
}

static void drop_queue(struct bus *b)
{
	while (b->out) {
		struct message *m = b->out;

		b->out = m->next;
		free(m);
	}
	b->last = NULL;
	b->queued = 0;
	b->sent = 0;
}

static void close_pipe(struct bus *b)
{
	if (b->state == PIPE_UP)
		arrive(b, BUS_PEER_WENT, NULL);
	b->state = PIPE_LEAVING;
	nng_stream_close(b->stream);
	if (b->waits)
		nng_aio_cancel(b->waiting);
	pthread_cond_broadcast(&b->changed);
}

static void write_on(struct bus *b)
{
	nng_iov parts[BUS_PARTS];
	unsigned n = 0;
	size_t skip = b->sent;

	if (b->writes || b->deaf || !is_alive(b))
		return;
	if (b->greeted < sizeof(greeting))
		parts[n++] = (nng_iov){ .iov_buf = (void *)(greeting + b->greeted),
					.iov_len = sizeof(greeting) - b->greeted };
	for (struct message *m = b->out; m && n < BUS_PARTS; m = m->next) {
		parts[n++] = (nng_iov){ .iov_buf = m->bytes + skip, .iov_len = m->len - skip };
		skip = 0;
	}
	if (!n)
		return;
	nng_aio_set_iov(b->writing, n, parts);
	b->writes = true;
	nng_stream_send(b->stream, b->writing);
}

static void read_on(struct bus *b)
{
	nng_iov parts[2];
	unsigned n = 0;

	memmove(b->buffer, b->buffer + b->from, b->to - b->from);
	b->to -= b->from;
	b->from = 0;
	if (b->partial)
		parts[n++] = (nng_iov){ .iov_buf = b->partial->bytes + b->got,
					.iov_len = b->partial->len - b->got };
	parts[n++] = (nng_iov){ .iov_buf = b->buffer + b->to, .iov_len = BUS_BUFFER - b->to };
	nng_aio_set_iov(b->reading, n, parts);
	b->reads = true;
	nng_stream_recv(b->stream, b->reading);
}

static bool take_greeting(struct bus *b)
{
	if (memcmp(b->buffer + b->from, greeting, sizeof(greeting)) != 0)
		return false;
	b->from += sizeof(greeting);
	b->state = PIPE_UP;
	nng_aio_cancel(b->waiting);
	arrive(b, BUS_PEER_CAME, NULL);
	pthread_cond_broadcast(&b->changed);
	return true;
}

/* The next message could not be allocated. The peer is not to blame, so we retry later. */
static void starve(struct bus *b)
{
	b->starves = true;
	if (b->waits)
		return;
	b->waits = true;
	nng_sleep_aio(REST_MS, b->waiting);
}

/* Takes a message's header. Returns false if it is invalid. If the message cannot be allocated, the
 * bus is starving. */
static bool take_head(struct bus *b)
{
	const uint8_t *head = b->buffer + b->from;
	uint64_t len = 0;

	for (unsigned i = 1; i < HEAD_SIZE; i++)
		len = len << 8 | head[i];
	if (head[0] != HEAD_TYPE || !len || len > b->route->max)
		return false;
	b->partial = malloc(sizeof(*b->partial) + len);
	if (!b->partial) {
		starve(b);
		return true;
	}
	b->partial->len = len;
	b->got = 0;
	b->from += HEAD_SIZE;
	return true;
}

/* Makes messages of the bytes that were read, then reads on, unless as many messages wait as the
 * route allows. */
static void digest(struct bus *b)
{
	bool right = true;

	b->starves = false;
	for (;;) {
		const size_t left = b->to - b->from;

		if (b->partial) {
			const size_t lacks = b->partial->len - b->got;
			const size_t n = numbers_smaller(left, lacks);

			memcpy(b->partial->bytes + b->got, b->buffer + b->from, n);
			b->from += n;
			b->got += n;
			if (n < lacks)
				break;
			arrive(b, 0, b->partial);
			b->partial = NULL;
		} else if (b->state == PIPE_GREETING) {
			if (left < sizeof(greeting))
				break;
			right = take_greeting(b);
		} else if (b->arrivals.messages >= depth_in(b)) {
			return;
		} else {
			if (left < HEAD_SIZE)
				break;
			right = take_head(b);
		}
		if (!right)
			close_pipe(b);
		if (!right || b->starves)
			return;
	}
	read_on(b);
}

static bool is_peer(const struct bus *b, nng_stream *s)
{
	uint64_t uid;

	return nng_stream_get_uint64(s, NNG_OPT_IPC_PEER_UID, &uid) == 0 && uid == b->peer;
}

static void turn_away(nng_stream *s)
{
	nng_stream_close(s);
	nng_stream_free(s);
}

/* Makes the stream the new pipe. Each pipe needs room for two events. */
static void admit(struct bus *b, nng_stream *s)
{
	if (b->freed || is_alive(b) || b->next || b->arrivals.events + 2 > ARRIVALS_EVENTS ||
	    !is_peer(b, s)) {
		turn_away(s);
		return;
	}
	if (b->state == PIPE_LEAVING) {
		b->next = s;
		return;
	}
	b->stream = s;
	b->state = PIPE_GREETING;
	b->epoch++;
	b->ending = b->deaf = b->starves = false;
	b->greeted = 0;
	b->from = b->to = 0;
	b->waits = true;
	nng_sleep_aio(GREETING_MS, b->waiting);
	write_on(b);
	read_on(b);
}

/* Once all operations of a closed pipe have ended, the next peer may come. */
static void settle(struct bus *b)
{
	nng_stream *next = b->next;

	if (b->state != PIPE_LEAVING || b->reads || b->writes || b->waits)
		return;
	nng_stream_free(b->stream);
	b->stream = b->next = NULL;
	b->state = PIPE_NONE;
	drop_queue(b);
	free(b->partial);
	b->partial = NULL;
	if (next)
		admit(b, next);
	pthread_cond_broadcast(&b->changed);
}

static void leave(struct bus *b)
{
	settle(b);
	pthread_mutex_unlock(&b->lock);
}

/* --- nng's threads --- */

static void on_read(void *ctx)
{
	struct bus *b = ctx;

	pthread_mutex_lock(&b->lock);
	const int r = nng_aio_result(b->reading);
	size_t n = nng_aio_count(b->reading);

	b->reads = false;
	if (!is_alive(b)) {
		/* The pipe was closed meanwhile: drop the bytes. */
	} else if (r && b->ending) {
		close_pipe(b);
	} else if (r) {
		b->ending = true;
		read_on(b);
	} else {
		if (b->partial) {
			const size_t lacks = b->partial->len - b->got;
			const size_t into = numbers_smaller(n, lacks);

			b->got += into;
			n -= into;
		}
		b->to += n;
		digest(b);
	}
	leave(b);
}

static void on_written(void *ctx)
{
	struct bus *b = ctx;

	pthread_mutex_lock(&b->lock);
	size_t n = nng_aio_count(b->writing);

	b->writes = false;
	if (nng_aio_result(b->writing)) {
		/* The peer is gone or does not read. First read what it sent before. */
		b->deaf = true;
		drop_queue(b);
	} else {
		const size_t lacks = sizeof(greeting) - b->greeted;
		const size_t into = numbers_smaller(n, lacks);

		b->greeted += into;
		b->sent += n - into;
		while (b->out && b->sent >= b->out->len) {
			struct message *m = b->out;

			b->sent -= m->len;
			b->out = m->next;
			b->queued--;
			free(m);
		}
		write_on(b);
	}
	pthread_cond_broadcast(&b->changed);
	leave(b);
}

static void on_waited(void *ctx)
{
	struct bus *b = ctx;

	pthread_mutex_lock(&b->lock);
	b->waits = false;
	if (b->state == PIPE_GREETING)
		close_pipe(b);
	else if (b->state == PIPE_UP && b->starves)
		digest(b);
	leave(b);
}

static void on_connected(void *ctx)
{
	struct bus *b = ctx;

	pthread_mutex_lock(&b->lock);
	const bool failed = nng_aio_result(b->connecting) != 0;

	if (!failed && !b->rests)
		admit(b, nng_aio_get_output(b->connecting, 0));
	b->rests = failed;
	if (!b->freed && failed)
		nng_sleep_aio(REST_MS, b->connecting);
	else if (!b->freed)
		nng_stream_listener_accept(b->door, b->connecting);
	leave(b);
}

/* --- opening --- */

void bus_free(struct bus *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->freed = true;
	if (is_alive(b))
		close_pipe(b);
	settle(b);
	while (b->state != PIPE_NONE)
		pthread_cond_wait(&b->changed, &b->lock);
	pthread_mutex_unlock(&b->lock);
	nng_aio_stop(b->connecting);
	nng_stream_listener_free(b->door);
	nng_stream_dialer_free(b->dialer);
	nng_aio_free(b->connecting);
	nng_aio_free(b->reading);
	nng_aio_free(b->writing);
	nng_aio_free(b->waiting);
	arrivals_done(&b->arrivals);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static void bus_freep(struct bus **b)
{
	bus_free(*b);
}

static int bus_new(enum busroute_id route, bool listener, uid_t peer, struct bus **ret)
{
	__attribute__((cleanup(bus_freep))) struct bus *b = calloc(1, sizeof(*b));
	pthread_condattr_t monotonic;

	if (!b)
		return -ENOMEM;
	b->route = busroute_of(route);
	b->listener = listener;
	b->peer = peer;
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&b->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	int r = arrivals_init(&b->arrivals);

	if (r)
		return r;
	r = nng_aio_alloc(&b->connecting, listener ? on_connected : NULL, b);

	if (!r)
		r = nng_aio_alloc(&b->reading, on_read, b);
	if (!r)
		r = nng_aio_alloc(&b->writing, on_written, b);
	if (!r)
		r = nng_aio_alloc(&b->waiting, on_waited, b);
	if (r)
		return errno_of(r);
	*ret = b;
	b = NULL;
	return 0;
}

static int url_of(enum busroute_id route, const char *run_dir, char *url, size_t size)
{
	const size_t n = strlen(SCHEME);

	memcpy(url, SCHEME, n);
	return busroute_path(route, run_dir, "sock", url + n, size - n);
}

int bus_listen(enum busroute_id route, const char *run_dir, uid_t peer, struct bus **ret)
{
	__attribute__((cleanup(bus_freep))) struct bus *b = NULL;
	char url[NNG_MAXADDRLEN];
	int r = bus_new(route, true, peer, &b);

	if (!r)
		r = url_of(route, run_dir, url, sizeof(url));
	if (r)
		return r;
	r = nng_stream_listener_alloc(&b->door, url);
	if (!r)
		r = nng_stream_listener_set_int(b->door, NNG_OPT_IPC_PERMISSIONS, 0660);
	if (!r)
		r = nng_stream_listener_listen(b->door);
	if (r)
		return errno_of(r);
	pthread_mutex_lock(&b->lock);
	nng_stream_listener_accept(b->door, b->connecting);
	pthread_mutex_unlock(&b->lock);
	*ret = b;
	b = NULL;
	return 0;
}

/* Whether the socket is missing, so that nng need not try: after each failure its thread spins for
 * some time. A socket of another type can check this without connecting. */
static bool is_missing(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const size_t n = strlen(path);
	const int fd = n < sizeof(a.sun_path) ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)
					      : -1;

	if (fd < 0)
		return false;
	memcpy(a.sun_path, path, n);

	const bool is = connect(fd, (struct sockaddr *)&a, sizeof(a)) && errno == ENOENT;

	close(fd);
	return is;
}

/* Dials once. Returns true if the listener has accepted us. */
static bool try_to_dial(struct bus *b, uint64_t until_ns)
{
	const struct timespec until = clock_timespec(until_ns);
	int r = 0;

	nng_stream_dialer_dial(b->dialer, b->connecting);
	nng_aio_wait(b->connecting); /* connects or fails at once */
	if (nng_aio_result(b->connecting))
		return false;
	pthread_mutex_lock(&b->lock);
	admit(b, nng_aio_get_output(b->connecting, 0));
	while (b->state != PIPE_UP && b->state != PIPE_NONE && !r)
		r = pthread_cond_timedwait(&b->changed, &b->lock, &until);
	const bool is_up = b->state == PIPE_UP;

	/* If the connection closed again, we were not accepted. */
	if (!is_up)
		arrivals_clear(&b->arrivals);
	pthread_mutex_unlock(&b->lock);
	return is_up;
}

int bus_dial(enum busroute_id route, const char *run_dir, uid_t peer, int timeout_ms,
	     struct bus **ret)
{
	__attribute__((cleanup(bus_freep))) struct bus *b = NULL;
	const uint64_t begun = clock_mono_ns(), until = begun + (uint64_t)timeout_ms * 1000000u;
	char url[NNG_MAXADDRLEN];
	int r = bus_new(route, false, peer, &b);

	if (!r)
		r = url_of(route, run_dir, url, sizeof(url));
	if (!r)
		r = errno_of(nng_stream_dialer_alloc(&b->dialer, url));
	if (r)
		return r;
	while (is_missing(url + strlen(SCHEME)) || !try_to_dial(b, until)) {
		const uint64_t now = clock_mono_ns();

		if (now >= until)
			return -ETIMEDOUT;
		/* A slow listener is probably on a busy host, and needs the cpu itself. */
		poll(NULL, 0, now - begun < DIAL_BRISK_NS ? DIAL_BRISK_MS : DIAL_MS);
	}
	*ret = b;
	b = NULL;
	return 0;
}

int bus_fd(const struct bus *b)
{
	return b->arrivals.fd;
}

/* --- receiving --- */

int bus_recv(struct bus *b, struct buf *into)
{
	struct arrival a = { .event = BUS_EMPTY };

	buf_reset(into);
	pthread_mutex_lock(&b->lock);
	const struct arrival *next = arrivals_next(&b->arrivals);
	const struct message *waits = next ? next->message : NULL;

	/* If memory runs out, the message stays in the queue. */
	if (waits && buf_reserve(into, waits->len) == -ENOMEM) {
		pthread_mutex_unlock(&b->lock);
		return -ENOMEM;
	}
	(void)arrivals_take(&b->arrivals, &a);
	if (a.event == BUS_PEER_CAME)
		b->current = a.epoch;
	else if (a.event == BUS_PEER_WENT)
		b->current = 0;
	else if (!a.event && b->state == PIPE_UP && !b->reads)
		digest(b);
	leave(b);
	if (a.event)
		return a.event;
	struct message *m = a.message;
	const int r = buf_append(into, m->bytes, m->len);

	free(m);
	return r;
}

int bus_event(struct bus *b)
{
	struct buf nothing = BUF_INIT(1);
	int r = bus_recv(b, &nothing);

	while (r <= 0) {
		bus_drop_peer(b);
		r = bus_recv(b, &nothing);
	}
	buf_done(&nothing);
	return r;
}

/* --- sending --- */

/* Needs the lock. A listener's peer may have been replaced while the tool does not know it yet. The
 * tool's messages are then not for the new peer. */
static bool is_current(const struct bus *b)
{
	return b->state == PIPE_UP && (!b->listener || b->epoch == b->current);
}

static struct message *message_new(struct span of)
{
	struct message *m = malloc(sizeof(*m) + HEAD_SIZE + of.len);

	if (!m)
		return NULL;
	m->next = NULL;
	m->len = HEAD_SIZE + of.len;
	m->bytes[0] = HEAD_TYPE;
	for (unsigned i = 1; i < HEAD_SIZE; i++)
		m->bytes[i] = (uint8_t)((uint64_t)of.len >> (8 * (HEAD_SIZE - 1 - i)));
	memcpy(m->bytes + HEAD_SIZE, of.data, of.len);
	return m;
}

/* Needs the lock. */
static int room(const struct bus *b)
{
	if (!is_current(b) || b->deaf)
		return -ENOTCONN;
	return b->queued < depth_out(b) ? 0 : -EAGAIN;
}

static void queue(struct bus *b, struct message *m)
{
	if (b->out)
		b->last->next = m;
	else
		b->out = m;
	b->last = m;
	b->queued++;
	write_on(b);
}

static int put(struct bus *b, struct span message, int timeout_ms)
{
	const struct timespec until =
		clock_timespec(clock_mono_ns() + (uint64_t)timeout_ms * 1000000u);
	struct message *m = NULL;
	int r, late = timeout_ms ? 0 : ETIMEDOUT;

	if (!message.len || message.len > b->route->max)
		return message.len ? -EMSGSIZE : -EINVAL;
	pthread_mutex_lock(&b->lock);
	for (;;) {
		r = room(b);
		if (!r && m) {
			queue(b, m);
			m = NULL;
			break;
		}
		if (!r) {
			/* Copy a large message without the lock, because nng's threads would wait
			 * for it. */
			pthread_mutex_unlock(&b->lock);
			m = message_new(message);
			if (!m)
				return -ENOMEM;
			pthread_mutex_lock(&b->lock);
			continue;
		}
		if (r != -EAGAIN || late)
			break;
		late = pthread_cond_timedwait(&b->changed, &b->lock, &until);
	}
	pthread_mutex_unlock(&b->lock);
	free(m);
	return r;
}

int bus_send(struct bus *b, struct span message)
{
	return put(b, message, 0);
}

int bus_send_wait(struct bus *b, struct span message, int timeout_ms)
{
	const int r = put(b, message, timeout_ms);

	return r == -EAGAIN ? -ETIMEDOUT : r;
}

bool bus_connected(const struct bus *b)
{
	struct bus *w = (struct bus *)b;

	pthread_mutex_lock(&w->lock);
	const bool is = is_current(w) && !w->deaf;

	pthread_mutex_unlock(&w->lock);
	return is;
}

void bus_drop_peer(struct bus *b)
{
	pthread_mutex_lock(&b->lock);
	arrivals_forget(&b->arrivals, b->listener ? b->current : b->epoch);
	if (is_current(b))
		close_pipe(b);
	leave(b);
}
