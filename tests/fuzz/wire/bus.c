/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: what happens around the bus, between calls of bus.h: who connects, which bytes come in
 * which pieces, when reads and writes continue or fail, and when the greeting is too late. The
 * target replaces nng's streams. Its operations call back when a step says so, and when the bus
 * waits for them.
 *
 * Checks:
 * - the bus hands out the bytes of the peer that it announced, in order, and none after its end
 * - it sends a greeting and whole messages, in the order of bus_send
 * - only the right user becomes a peer
 * - no stream and no operation is left over
 */
#include <errno.h>
#include <nng/nng.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "common/wire/bus/bus.h"
#include "tests/fuzz/must.h"

#define UID 1000
#define STREAMS 8
#define SAID 4096
#define MAX_STEPS 128
#define IOVS 8

enum step { CONNECT, SAY, WRITTEN, READ_FAILS, WRITE_FAILS, LATE, TAKE, SEND, DROP, STEPS };
enum operation { NONE, ACCEPTING, READING, WRITING, SLEEPING };

/* A peer and the stream to it. */
struct nng_stream {
	bool used, open, stranger, is_peer;
	uint8_t said[SAID], heard[SAID];
	size_t said_len, handed_out, heard_len;
};

struct nng_aio {
	void (*call)(void *);
	void *ctx;
	enum operation what;
	int result;
	size_t count;
	nng_iov iov[IOVS];
	unsigned iovs;
	struct nng_stream *stream;
	bool canceled;
};

static const uint8_t greeting[8] = { 0, 'S', 'P', 0, 0, 16, 0, 0 };

static struct {
	struct span rest;
	struct nng_stream streams[STREAMS];
	unsigned next;
	struct nng_aio *aios[4];
	unsigned aio_count, open;
	struct nng_stream *current; /* its arrival was handed out, its end was not */
	bool dialing;
} world;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t choose(void)
{
	uint8_t b = 0;

	(void)span_read(&world.rest, &b, 1);
	return b;
}

/* --- nng --- */

static void complete(struct nng_aio *a, int result, size_t count)
{
	a->what = NONE;
	a->result = result;
	a->count = count;
	a->canceled = false;
	if (a->call)
		a->call(a->ctx);
}

static struct nng_aio *find(enum operation what)
{
	for (unsigned i = 0; i < world.aio_count; i++) {
		if (world.aios[i]->what == what)
			return world.aios[i];
	}
	return NULL;
}

/* Calls back for one canceled operation, or one of a closed stream. Returns false if there is
 * none. */
static bool end_one(void)
{
	for (unsigned i = 0; i < world.aio_count; i++) {
		struct nng_aio *a = world.aios[i];

		if (a->what == NONE || !(a->canceled || (a->stream && !a->stream->open)))
			continue;
		complete(a, a->canceled ? NNG_ECANCELED : NNG_ECLOSED, 0);
		return true;
	}
	return false;
}

static void begin(struct nng_aio *a, enum operation what, struct nng_stream *s)
{
	must(a->what == NONE);
	a->what = what;
	a->stream = s;
	a->canceled = false;
}

int __wrap_nng_aio_alloc(nng_aio **ret, void (*call)(void *), void *ctx);
int __wrap_nng_aio_alloc(nng_aio **ret, void (*call)(void *), void *ctx)
{
	struct nng_aio *a = calloc(1, sizeof(*a));

	must(a && world.aio_count < 4);
	a->call = call;
	a->ctx = ctx;
	world.aios[world.aio_count++] = *ret = a;
	return 0;
}

void __wrap_nng_aio_free(nng_aio *a);
void __wrap_nng_aio_free(nng_aio *a)
{
	if (!a)
		return;
	must(a->what == NONE);
	for (unsigned i = 0; i < world.aio_count; i++) {
		if (world.aios[i] == a)
			world.aios[i] = world.aios[--world.aio_count];
	}
	free(a);
}

void __wrap_nng_aio_cancel(nng_aio *a);
void __wrap_nng_aio_cancel(nng_aio *a)
{
	a->canceled = a->what != NONE;
}

void __wrap_nng_aio_stop(nng_aio *a);
void __wrap_nng_aio_stop(nng_aio *a)
{
	if (a && a->what != NONE)
		complete(a, NNG_ECANCELED, 0);
}

int __wrap_nng_aio_result(nng_aio *a);
int __wrap_nng_aio_result(nng_aio *a)
{
	return a->result;
}

size_t __wrap_nng_aio_count(nng_aio *a);
size_t __wrap_nng_aio_count(nng_aio *a)
{
	return a->count;
}

void *__wrap_nng_aio_get_output(nng_aio *a, unsigned i);
void *__wrap_nng_aio_get_output(nng_aio *a, unsigned i)
{
	return a->stream;
}

int __wrap_nng_aio_set_iov(nng_aio *a, unsigned n, const nng_iov *iov);
int __wrap_nng_aio_set_iov(nng_aio *a, unsigned n, const nng_iov *iov)
{
	must(n && n <= IOVS && a->what == NONE);
	memcpy(a->iov, iov, n * sizeof(*iov));
	a->iovs = n;
	return 0;
}

static struct nng_stream *connect_one(uint8_t how)
{
	if (world.next == STREAMS)
		return NULL;
	struct nng_stream *s = &world.streams[world.next++];

	s->used = s->open = true;
	s->stranger = how & 1;
	s->is_peer = false;
	s->said_len = s->handed_out = s->heard_len = 0;
	world.open++;
	return s;
}

void __wrap_nng_aio_wait(nng_aio *a);
void __wrap_nng_aio_wait(nng_aio *a)
{
	must(a->what == ACCEPTING);
	const uint8_t how = choose();
	struct nng_stream *s = how & 2 ? NULL : connect_one(how);

	a->stream = s;
	complete(a, s ? 0 : NNG_ECONNREFUSED, 0);
}

void __wrap_nng_sleep_aio(nng_duration ms, nng_aio *a);
void __wrap_nng_sleep_aio(nng_duration ms, nng_aio *a)
{
	begin(a, SLEEPING, NULL);
}

int __wrap_nng_stream_listener_alloc(nng_stream_listener **ret, const char *url);
int __wrap_nng_stream_listener_alloc(nng_stream_listener **ret, const char *url)
{
	*ret = (nng_stream_listener *)&world;
	return 0;
}

int __wrap_nng_stream_listener_set_int(nng_stream_listener *l, const char *name, int v);
int __wrap_nng_stream_listener_set_int(nng_stream_listener *l, const char *name, int v)
{
	return 0;
}

int __wrap_nng_stream_listener_listen(nng_stream_listener *l);
int __wrap_nng_stream_listener_listen(nng_stream_listener *l)
{
	return 0;
}

void __wrap_nng_stream_listener_accept(nng_stream_listener *l, nng_aio *a);
void __wrap_nng_stream_listener_accept(nng_stream_listener *l, nng_aio *a)
{
	begin(a, ACCEPTING, NULL);
}

void __wrap_nng_stream_listener_free(nng_stream_listener *l);
void __wrap_nng_stream_listener_free(nng_stream_listener *l)
{
}

int __wrap_nng_stream_dialer_alloc(nng_stream_dialer **ret, const char *url);
int __wrap_nng_stream_dialer_alloc(nng_stream_dialer **ret, const char *url)
{
	*ret = (nng_stream_dialer *)&world;
	return 0;
}

void __wrap_nng_stream_dialer_dial(nng_stream_dialer *d, nng_aio *a);
void __wrap_nng_stream_dialer_dial(nng_stream_dialer *d, nng_aio *a)
{
	begin(a, ACCEPTING, NULL);
}

void __wrap_nng_stream_dialer_free(nng_stream_dialer *d);
void __wrap_nng_stream_dialer_free(nng_stream_dialer *d)
{
}

void __wrap_nng_stream_send(nng_stream *s, nng_aio *a);
void __wrap_nng_stream_send(nng_stream *s, nng_aio *a)
{
	must(s->used && s->open && !s->stranger);
	begin(a, WRITING, s);
}

void __wrap_nng_stream_recv(nng_stream *s, nng_aio *a);
void __wrap_nng_stream_recv(nng_stream *s, nng_aio *a)
{
	must(s->used && s->open && !s->stranger);
	begin(a, READING, s);
}

void __wrap_nng_stream_close(nng_stream *s);
void __wrap_nng_stream_close(nng_stream *s)
{
	must(s->used);
	s->open = false;
}

void __wrap_nng_stream_free(nng_stream *s);
void __wrap_nng_stream_free(nng_stream *s)
{
	must(s->used && !s->open);
	for (unsigned i = 0; i < world.aio_count; i++)
		must(world.aios[i]->what == NONE || world.aios[i]->stream != s);
	s->used = false;
	world.open--;
}

int __wrap_nng_stream_get_uint64(nng_stream *s, const char *name, uint64_t *ret);
int __wrap_nng_stream_get_uint64(nng_stream *s, const char *name, uint64_t *ret)
{
	*ret = s->stranger ? UID + 1 : UID;
	return 0;
}

/* --- system calls of the bus --- */

int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
	return 1000000;
}

ssize_t __wrap_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n)
{
	return (ssize_t)n;
}

ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
	return (ssize_t)n;
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
	return 0;
}

struct pollfd;
int __wrap_poll(struct pollfd *p, unsigned long n, int timeout);
int __wrap_poll(struct pollfd *p, unsigned long n, int timeout)
{
	return 0;
}

static void something_happens(uint8_t what, uint8_t which);

/* A waiting thread lets others run. */
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
	must(end_one());
	pthread_mutex_lock(lock);
	return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *lock,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	const bool late = !world.rest.len;
	const uint8_t what = choose();

	pthread_mutex_unlock(lock);
	something_happens(what % TAKE, choose());
	pthread_mutex_lock(lock);
	return late ? ETIMEDOUT : 0;
}

/* --- the peers --- */

/* The stream's peer sends n more bytes, into the pending read. */
static void say(struct nng_aio *a, size_t n)
{
	struct nng_stream *s = a->stream;
	struct span bytes = { 0 };
	size_t count = 0;

	if (n > world.rest.len)
		n = world.rest.len;
	if (n > SAID - s->said_len)
		n = SAID - s->said_len;
	(void)span_take(&world.rest, n, &bytes);
	for (unsigned i = 0; i < a->iovs && count < n; i++) {
		size_t part = n - count;

		if (part > a->iov[i].iov_len)
			part = a->iov[i].iov_len;
		memcpy(a->iov[i].iov_buf, bytes.data + count, part);
		count += part;
	}
	if (!count)
		return;
	/* Bytes that came while the stream was closed are dropped. */
	if (s->open) {
		memcpy(s->said + s->said_len, bytes.data, count);
		s->said_len += count;
	}
	complete(a, 0, count);
}

static void greet(struct nng_aio *a)
{
	struct nng_stream *s = a->stream;

	/* No fuzzer would guess it. Only once. */
	if (s->said_len || a->iov[0].iov_len < sizeof(greeting))
		return;
	memcpy(a->iov[0].iov_buf, greeting, sizeof(greeting));
	memcpy(s->said, greeting, sizeof(greeting));
	s->said_len = sizeof(greeting);
	complete(a, 0, sizeof(greeting));
}

/* Sends a message of n bytes, if there is room for all of it. */
static void say_message(struct nng_aio *a, uint8_t n)
{
	struct nng_stream *s = a->stream;
	const size_t all = 9 + n;
	uint8_t bytes[9 + 255] = { 1, [8] = n };
	const struct span before = world.rest;

	if (!n || all > SAID - s->said_len)
		return;
	memset(bytes + 9, (int)s->said_len, n);
	world.rest = (struct span){ .data = bytes, .len = all };
	say(a, all);
	world.rest = before;
}

/* Checks what leaves, in whatever pieces: the greeting, then messages. Each message repeats one
 * byte value, 1 more each time. */
static void hear(struct nng_aio *a, size_t most)
{
	struct nng_stream *s = a->stream;
	size_t count = 0;

	for (unsigned i = 0; i < a->iovs && count < most; i++) {
		size_t part = most - count;

		if (part > a->iov[i].iov_len)
			part = a->iov[i].iov_len;
		must(part > 0);
		if (part > SAID - s->heard_len)
			break;
		memcpy(s->heard + s->heard_len, a->iov[i].iov_buf, part);
		s->heard_len += part;
		count += part;
	}
	if (!count)
		return;
	must(memcmp(s->heard, greeting, s->heard_len < 8 ? s->heard_len : 8) == 0);
	complete(a, 0, count);
}

static void check_heard(const struct nng_stream *s)
{
	int last = -1;

	for (size_t at = 8; at + 9 <= s->heard_len;) {
		const size_t len = (size_t)s->heard[at + 7] << 8 | s->heard[at + 8];

		must(s->heard[at] == 1 && len > 0 && s->heard[at + 1] == 0);
		at += 9;
		for (size_t i = 0; i < len && at + i < s->heard_len; i++)
			must(s->heard[at + i] == s->heard[at]);
		if (at < s->heard_len) {
			must(last < 0 || s->heard[at] == (uint8_t)(last + 1));
			last = s->heard[at];
		}
		at += len;
	}
}

static void something_happens(uint8_t what, uint8_t which)
{
	struct nng_aio *a;

	switch (what) {
	case CONNECT:
		a = find(ACCEPTING);
		if (a && !world.dialing) {
			a->stream = connect_one(which);
			complete(a, a->stream ? 0 : NNG_ENOMEM, 0);
		}
		break;
	case SAY:
		a = find(READING);
		if (a && a->stream->open && which == 0xff)
			greet(a);
		else if (a && which >= 0xc0)
			say_message(a, (uint8_t)(which - 0xbf));
		else if (a)
			say(a, which);
		break;
	case WRITTEN:
		a = find(WRITING);
		if (a && a->stream->open)
			hear(a, which ? which : SIZE_MAX);
		break;
	case READ_FAILS:
		a = find(READING);
		if (a)
			complete(a, NNG_ECONNSHUT, 0);
		break;
	case WRITE_FAILS:
		a = find(WRITING);
		if (a)
			complete(a, NNG_ECLOSED, 0);
		break;
	default:
		a = find(SLEEPING);
		if (!end_one() && a)
			complete(a, 0, 0);
		break;
	}
}

/* --- the tool --- */

/* The next peer that sent the greeting. */
static void came(void)
{
	struct nng_stream *s = world.current ? world.current + 1 : world.streams;

	while (s < world.streams + world.next && !s->is_peer &&
	       (s->stranger || s->said_len < 8 || memcmp(s->said, greeting, 8) != 0))
		s++;
	must(s < world.streams + world.next);
	s->is_peer = true;
	s->handed_out = 8;
	world.current = s;
}

static void take(struct bus *b, bool *there, bool *dropped)
{
	struct buf m = BUF_INIT(0);
	const int r = bus_recv(b, &m);
	struct nng_stream *s = world.current;

	if (r == BUS_PEER_CAME) {
		must(!*there);
		came();
		*there = true;
		*dropped = false;
	} else if (r == BUS_PEER_WENT) {
		must(*there);
		*there = false;
	} else if (r == 0) {
		must(*there && !*dropped && m.len);
		const uint8_t *at = s->said + s->handed_out;

		must(s->handed_out + 9 + m.len <= s->said_len && at[0] == 1 &&
		     ((size_t)at[7] << 8 | at[8]) == m.len && memcmp(at + 9, m.data, m.len) == 0);
		s->handed_out += 9 + m.len;
	} else {
		must(r == BUS_EMPTY);
	}
	buf_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t text[255];
	struct bus *b;
	bool there = false, dropped = false;
	uint8_t head[3], serial = 0;

	if (!size)
		return 0;
	world.rest = (struct span){ .data = data + 1, .len = size - 1 };
	world.next = world.aio_count = world.open = 0;
	world.current = NULL;
	world.dialing = data[0] & 1;
	const enum busroute_id route = data[0] >> 1 & 3;
	const int r = world.dialing ? bus_dial(route, "/nowhere", UID, 0, &b)
				    : bus_listen(route, "/nowhere", UID, &b);

	for (int i = 0; !r && i < MAX_STEPS && span_read(&world.rest, head, 2); i++) {
		const uint8_t what = head[0] % STEPS;
		int sent;

		switch (what) {
		case TAKE:
			take(b, &there, &dropped);
			break;
		case SEND:
			memset(text, serial, sizeof(text));
			sent = bus_send(b, (struct span){ .data = text, .len = head[1] });
			must(sent <= 0 && (sent || head[1]));
			must(sent != 0 || bus_connected(b));
			serial += sent == 0;
			break;
		case DROP:
			bus_drop_peer(b);
			dropped = there;
			break;
		default:
			something_happens(what, head[1]);
		}
	}
	if (!r)
		bus_free(b);
	must(world.aio_count == 0 && world.open == 0);
	for (unsigned i = 0; i < world.next; i++)
		check_heard(&world.streams[i]);
	return 0;
}
