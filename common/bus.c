/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads meet here: the tool's own, in the functions of bus.h, and nng's, in on_pipe. What
 * they share stands behind the lock: which pipe lives, and a ring of what came and went. nng keeps
 * messages in order over all pipes of a socket and marks each with its pipe, so handing out
 * everything before a departure is a matter of holding back the first message of the next pipe.
 *
 * How nng 1.5 behaves, which the code rests on (src/core/pipe.c, src/sp/protocol/pair0/pair.c):
 *  - ADD_PRE, before a byte is exchanged, may close the pipe. The protocol then takes it, or not
 * when the last one is still being torn down; ADD_POST follows only if it did, and may come after
 * REM_POST. REM_POST always comes.
 *  - A connection that the listener turns away looks established to the dialer. So the listener
 * greets the pipe it keeps with an empty message, and a dialer waits for that; nng dials again by
 * itself until then.
 *  - Messages queued for a pipe that died stay queued, and would go to the next peer. Setting the
 * queue's length to 0 drops them.
 *  - nng_close drops what is queued. It also waits for ever when a pipe is closed between two parts
 * of a message (ipc_pipe_send_cb and ipc_pipe_recv_cb go on with an aio that ipc_pipe_close has
 * stopped, and the message's own aio never ends): seen in one of seven closings under load. So it
 * is not called. Closing the pipe and the listener does not wait; the socket, which then does
 * nothing, is left to the end of the process.
 *  - The same stop without an end comes over nng's only reaper when a send fails while a message
 * comes in, as when a peer dies: a pipe is closed between the message's head, which was read, and
 * its body, whose reading never ends. REM_POST of that pipe came, but no later one will, of any
 * socket of the process: whoever is let in next stays in for ever, or the protocol lets nobody in,
 * for it still has the former. Nothing in the process can end that. It shows as sockets that are
 * shut down and not closed, and is looked for when a peer is turned away (`stuck`).
 *  - A message handed to a pipe in the moment it closes is not freed (nni_aio_begin of a stopped
 * aio runs no callback): one message a departure at most.
 */
#include "common/bus.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/transport/ipc/ipc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/msg.h"

#define DIAL_BRISK_NS 500000000ull /* so long a dialer looks every millisecond */
#define BUS_MAX_FD 65536
#define BUS_PATH_MAX 128
#define BUS_SCHEME "ipc://"
#define BUS_EVENTS 64  /* came and went, not yet handed out */
#define BUS_EMPTIES 64 /* empty messages passed over in one call */
#define BUS_REDIAL_MS 5
#define BUS_SUSPECT_NS 250000000u /* between two looks for sockets that are not closed */
#define BUS_STUCK_NS 2000000000u  /* since the first look that saw one */
#define BUS_SHUT 16		  /* of these that are kept in mind */

struct route {
	const char *listener; /* whose folder the socket is in */
	const char *name;
	size_t max;	   /* bytes of a message */
	int from_listener; /* messages that may wait, by direction */
	int from_dialer;
};

/* A batch is at most one message more than the sender's batch size, which no tool sets above
 * MSG_MAX_SIZE. */
static const struct route routes[BUS_ROUTES] = {
	[BUS_ROWS] = { "bpf", "rows", MSG_MAX_SIZE, 64, 8 },
	[BUS_STREAM] = { "bpf", "stream", 2 * MSG_MAX_SIZE, 64, 1 },
	[BUS_FILES] = { "bpf", "files", 160u << 10, 64, 64 }, /* an answer may hold memory */
	[BUS_NAMED] = { "export", "named", 2 * MSG_MAX_SIZE, 1, 64 },
};

struct bus_note {
	nng_pipe pipe;
	enum bus_event event;
};

struct bus {
	const struct route *route;
	nng_socket sock;
	bool listener;
	uid_t peer;
	int send_depth;
	int epoll, event;     /* ours */
	int send_fd;	      /* nng's */
	pthread_mutex_t lock; /* over all up to the next gap */
	nng_pipe live;	      /* let in, not yet removed; id 0 when there is none */
	bool up;	      /* the protocol has taken it */
	nng_pipe early;	      /* removed before ADD_POST */
	bool spent;	      /* a dialer had its peer, or the bus was freed: no other one */
	struct bus_note notes[BUS_EVENTS];
	unsigned first, len;

	bool turned_away; /* a peer, while another was there, since the last look */
	uint64_t turned_ns;
	struct {
		ino_t ino; /* 0: none */
		uint64_t since_ns;
	} shut[BUS_SHUT]; /* sockets that were seen shut down, and not closed */

	nng_pipe current;	 /* whose messages are handed out */
	nng_msg *held;		 /* of a later pipe */
	nng_listener door;	 /* of a listener */
	nng_dialer dialer;	 /* of a dialer */
	char path[BUS_PATH_MAX]; /* of the socket */
	struct bus *next;	 /* in freed */
};

/* What bus_free let go, which nng may still call back with. A process has a bus for each of its
 * routes, and frees it as it ends. */
static struct bus *freed;

#ifdef __SANITIZE_ADDRESS__
const char *__lsan_default_suppressions(void);
/* What the above leaves. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libnng.so\n";
}
#endif

static int errno_of(int nng)
{
	switch (nng) {
	case 0:
		return 0;
	case NNG_ENOMEM:
		return -ENOMEM;
	case NNG_EAGAIN:
	case NNG_ETIMEDOUT:
		return -EAGAIN;
	case NNG_ECLOSED:
	case NNG_ECONNRESET:
	case NNG_ECONNABORTED:
		return -ENOTCONN;
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
	case NNG_EMSGSIZE:
		return -EMSGSIZE;
	default:
		return nng & NNG_ESYSERR ? -(nng & ~NNG_ESYSERR) : -EIO;
	}
}

/* --- nng's threads --- */

/* Makes the event descriptor say whether there is something that nng's own does not show. Under the
 * lock. */
static void show(struct bus *b)
{
	uint64_t n = 1;
	ssize_t r = b->len || b->held || b->turned_away ? write(b->event, &n, sizeof(n))
							: read(b->event, &n, sizeof(n));

	(void)r; /* it does not block, and both "was set" and "was clear" are as wanted */
}

static void note(struct bus *b, nng_pipe p, enum bus_event event)
{
	b->notes[(b->first + b->len++) % BUS_EVENTS] = (struct bus_note){ .pipe = p,
									  .event = event };
	show(b);
}

static bool is_peer(const struct bus *b, nng_pipe p)
{
	uint64_t uid;

	return nng_pipe_get_uint64(p, NNG_OPT_IPC_PEER_UID, &uid) == 0 && uid == b->peer;
}

static void greet(struct bus *b, nng_pipe p)
{
	nng_msg *m;

	if (nng_msg_alloc(&m, 0)) {
		nng_pipe_close(p);
		return;
	}
	if (nng_sendmsg(b->sock, m, NNG_FLAG_NONBLOCK)) {
		nng_msg_free(m);
		nng_pipe_close(p);
	}
}

/* The one that is there may be gone, and nng not say so. */
static void suspect(struct bus *b)
{
	const uint64_t now = clock_mono_ns();

	if (now - b->turned_ns < BUS_SUSPECT_NS)
		return;
	b->turned_ns = now;
	b->turned_away = true;
	show(b);
}

static void on_pipe(nng_pipe p, nng_pipe_ev event, void *ctx)
{
	struct bus *b = ctx;

	pthread_mutex_lock(&b->lock);
	const bool ours = b->live.id == p.id;

	if (event == NNG_PIPE_EV_ADD_PRE) {
		/* A pipe makes two notes, and those of earlier pipes are made by now, but for an
		 * early one. */
		const bool peer = is_peer(b, p);

		if (b->live.id || b->spent || BUS_EVENTS - b->len < 4 || !peer)
			nng_pipe_close(p);
		else
			b->live = p;
		if (peer && b->listener && b->live.id != p.id)
			suspect(b);
	} else if (event == NNG_PIPE_EV_ADD_POST && ours) {
		b->up = true;
		note(b, p, BUS_PEER_CAME);
		if (b->listener)
			greet(b, p);
	} else if (event == NNG_PIPE_EV_ADD_POST && b->early.id == p.id) {
		note(b, p, BUS_PEER_CAME);
		note(b, p, BUS_PEER_WENT);
	} else if (event == NNG_PIPE_EV_REM_POST && ours) {
		/* Without ADD_POST before: the protocol did not take it, and then nobody need know;
		 * or ADD_POST is yet to come. */
		if (b->up) {
			note(b, p, BUS_PEER_WENT);
		} else {
			b->early = p;
			if (b->listener)
				suspect(b); /* the protocol may have another one still, for ever */
		}
		b->live.id = 0;
		b->up = false;
		nng_socket_set_int(b->sock, NNG_OPT_SENDBUF, 0);
		nng_socket_set_int(b->sock, NNG_OPT_SENDBUF, b->send_depth);
		if (b->spent && !b->listener)
			nng_dialer_close(b->dialer); /* or it dials again */
	}
	pthread_mutex_unlock(&b->lock);
}

/* --- opening --- */

void bus_free(struct bus *b)
{
	if (!b)
		return;
	if (b->held)
		nng_msg_free(b->held);
	b->held = NULL;
	if (b->sock.id) {
		pthread_mutex_lock(&b->lock);
		const nng_pipe live = b->live;

		b->spent = true;
		pthread_mutex_unlock(&b->lock);
		if (b->door.id)
			nng_listener_close(b->door);
		else if (b->dialer.id)
			nng_dialer_close(b->dialer);
		if (live.id)
			nng_pipe_close(live);
		b->next = freed;
		freed = b;
		return;
	}
	if (b->epoll >= 0)
		close(b->epoll);
	if (b->event >= 0)
		close(b->event);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static void bus_freep(struct bus **b)
{
	bus_free(*b);
}

static int watch(int epoll, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_socket(struct bus *b)
{
	const int recv_depth = b->listener ? b->route->from_dialer : b->route->from_listener;
	int recv_fd;
	int r = nng_pair0_open(&b->sock);

	if (!r)
		r = nng_socket_set_size(b->sock, NNG_OPT_RECVMAXSZ, b->route->max);
	if (!r)
		r = nng_socket_set_int(b->sock, NNG_OPT_SENDBUF, b->send_depth);
	if (!r)
		r = nng_socket_set_int(b->sock, NNG_OPT_RECVBUF, recv_depth);
	for (nng_pipe_ev e = NNG_PIPE_EV_ADD_PRE; e <= NNG_PIPE_EV_REM_POST && !r; e++)
		r = nng_pipe_notify(b->sock, e, on_pipe, b);
	if (!r)
		r = nng_socket_get_int(b->sock, NNG_OPT_RECVFD, &recv_fd);
	if (!r)
		r = nng_socket_get_int(b->sock, NNG_OPT_SENDFD, &b->send_fd);
	if (r)
		return errno_of(r);
	return watch(b->epoll, recv_fd);
}

static int bus_new(enum bus_route_id route, bool listener, uid_t peer, struct bus **ret)
{
	__attribute__((cleanup(bus_freep))) struct bus *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->route = &routes[route];
	b->listener = listener;
	b->peer = peer;
	b->send_depth = listener ? b->route->from_listener : b->route->from_dialer;
	b->event = -1;
	pthread_mutex_init(&b->lock, NULL);
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (b->epoll < 0)
		return -errno;
	b->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->event < 0)
		return -errno;
	int r = watch(b->epoll, b->event);

	if (!r)
		r = open_socket(b);
	if (r)
		return r;
	*ret = b;
	b = NULL;
	return 0;
}

static int url_of(const struct bus *b, const char *run_dir, char *url, size_t size)
{
	const int n = snprintf(url, size, "ipc://%s/%s/%s.sock", run_dir, b->route->listener,
			       b->route->name);

	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

int bus_listen(enum bus_route_id route, const char *run_dir, uid_t peer, struct bus **ret)
{
	__attribute__((cleanup(bus_freep))) struct bus *b = NULL;
	char url[NNG_MAXADDRLEN];
	int r = bus_new(route, true, peer, &b);

	if (!r)
		r = url_of(b, run_dir, url, sizeof(url));
	if (!r && strlen(url) - strlen(BUS_SCHEME) < sizeof(b->path))
		strcpy(b->path, url + strlen(BUS_SCHEME));
	if (r)
		return r;
	r = nng_listener_create(&b->door, b->sock, url);
	if (!r)
		r = nng_listener_set_int(b->door, NNG_OPT_IPC_PERMISSIONS, 0660);
	if (!r)
		r = nng_listener_start(b->door, 0);
	if (r)
		return errno_of(r);
	*ret = b;
	b = NULL;
	return 0;
}

/* Forgets pipes that closed before now. True when the pipe that was greeted is up; one that is gone
 * is greeted no more. */
static bool settle(struct bus *b, uint32_t *greeted)
{
	pthread_mutex_lock(&b->lock);
	while (b->len >= 2) {
		b->first = (b->first + 2) % BUS_EVENTS;
		b->len -= 2;
	}
	const bool done = *greeted && b->up && b->live.id == *greeted;

	if (b->live.id != *greeted)
		*greeted = 0;
	b->spent = done;
	show(b);
	pthread_mutex_unlock(&b->lock);
	return done;
}

static int await_greeting(struct bus *b, int timeout_ms)
{
	const uint64_t begun = clock_mono_ns(), until = begun + (uint64_t)timeout_ms * 1000000u;
	uint32_t greeted = 0;

	while (!settle(b, &greeted)) {
		nng_msg *m = NULL;
		/* What follows a greeting is for bus_recv, also when it is here before ADD_POST. */
		int r = greeted ? NNG_EAGAIN : nng_recvmsg(b->sock, &m, NNG_FLAG_NONBLOCK);

		if (r && r != NNG_EAGAIN)
			return errno_of(r);
		if (m) {
			/* Only what a pipe left behind that was greeted and closed is not empty. */
			if (!nng_msg_len(m))
				greeted = nng_msg_get_pipe(m).id;
			nng_msg_free(m);
			continue;
		}
		const uint64_t now = clock_mono_ns();

		if (now >= until)
			return -ETIMEDOUT;
		/* Who is slow to come has a slow host, and needs the cpu itself. */
		poll(NULL, 0, now - begun < DIAL_BRISK_NS ? 1 : 20);
	}
	return 0;
}

int bus_dial(enum bus_route_id route, const char *run_dir, uid_t peer, int timeout_ms,
	     struct bus **ret)
{
	__attribute__((cleanup(bus_freep))) struct bus *b = NULL;
	char url[NNG_MAXADDRLEN];
	int r = bus_new(route, false, peer, &b);

	if (!r)
		r = url_of(b, run_dir, url, sizeof(url));
	if (r)
		return r;
	r = nng_dialer_create(&b->dialer, b->sock, url);
	if (!r)
		r = nng_dialer_set_ms(b->dialer, NNG_OPT_RECONNMINT, BUS_REDIAL_MS);
	if (!r)
		r = nng_dialer_set_ms(b->dialer, NNG_OPT_RECONNMAXT, 4 * BUS_REDIAL_MS);
	if (!r)
		r = nng_dialer_start(b->dialer, NNG_FLAG_NONBLOCK);
	if (r)
		return errno_of(r);
	r = await_greeting(b, timeout_ms);
	if (r)
		return r;
	*ret = b;
	b = NULL;
	return 0;
}

int bus_fd(const struct bus *b)
{
	return b->epoll;
}

/* --- receiving --- */

/* The oldest note, if there is one. */
static bool peek_note(struct bus *b, struct bus_note *ret)
{
	pthread_mutex_lock(&b->lock);
	const bool any = b->len;

	if (any)
		*ret = b->notes[b->first];
	pthread_mutex_unlock(&b->lock);
	return any;
}

static int take_note(struct bus *b, struct bus_note n)
{
	pthread_mutex_lock(&b->lock);
	if (n.event == BUS_PEER_CAME && b->held && nng_msg_get_pipe(b->held).id != n.pipe.id) {
		/* Of a pipe whose notes were never made, or it had been handed out. */
		nng_msg_free(b->held);
		b->held = NULL;
	}
	b->first = (b->first + 1) % BUS_EVENTS;
	b->len--;
	show(b);
	pthread_mutex_unlock(&b->lock);
	b->current.id = n.event == BUS_PEER_CAME ? n.pipe.id : 0;
	return n.event;
}

static void hold(struct bus *b, nng_msg *m)
{
	pthread_mutex_lock(&b->lock);
	b->held = m;
	show(b);
	pthread_mutex_unlock(&b->lock);
}

/* The next message of the current pipe: 0, BUS_EMPTY, -errno. */
static int take_message(struct bus *b, nng_msg **ret)
{
	nng_msg *m = b->held;

	if (m && nng_msg_get_pipe(m).id != b->current.id)
		return BUS_EMPTY;
	if (m) {
		hold(b, NULL);
		*ret = m;
		return 0;
	}
	int r = nng_recvmsg(b->sock, &m, NNG_FLAG_NONBLOCK);

	if (r)
		return r == NNG_EAGAIN ? BUS_EMPTY : errno_of(r);
	if (nng_msg_get_pipe(m).id != b->current.id) {
		hold(b, m);
		return BUS_EMPTY;
	}
	*ret = m;
	return 0;
}

/* nng does not say which sockets are below its own, but their name does. */
static bool is_ours(const struct bus *b, int fd)
{
	struct sockaddr_un name = { 0 };
	socklen_t size = sizeof(int);
	int type, listens;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_STREAM)
		return false;
	size = sizeof(listens);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 || listens)
		return false;
	size = sizeof(name) - 1;
	return getsockname(fd, (struct sockaddr *)&name, &size) == 0 &&
	       name.sun_family == AF_UNIX && strcmp(name.sun_path, b->path) == 0;
}

/* Whether nng closes no sockets any more: one of ours was shut down, or its peer's end is, and it
 * is there all the time. Called when nothing waits, so that it is not us who left it unread. */
static bool stuck(struct bus *b)
{
	const uint64_t now = clock_mono_ns();
	bool present[BUS_SHUT] = { false };
	bool is_stuck = false;
	struct stat st;

	for (int fd = 3; fd < BUS_MAX_FD; fd++) {
		struct pollfd p = { .fd = fd };
		int at = -1;

		if (!is_ours(b, fd) || poll(&p, 1, 0) != 1 || !(p.revents & POLLHUP) ||
		    fstat(fd, &st) < 0)
			continue;
		/* Others come and go meanwhile, on smaller numbers. */
		for (int i = BUS_SHUT - 1; i >= 0; i--) {
			if (b->shut[i].ino == st.st_ino) {
				at = i;
				break;
			}
			if (!b->shut[i].ino)
				at = i;
		}
		if (at < 0)
			continue;
		if (b->shut[at].ino != st.st_ino) {
			b->shut[at].ino = st.st_ino;
			b->shut[at].since_ns = now;
		}
		present[at] = true;
		is_stuck |= now - b->shut[at].since_ns > BUS_STUCK_NS;
	}
	for (int i = 0; i < BUS_SHUT; i++) {
		if (!present[i])
			b->shut[i].ino = 0;
	}
	return is_stuck;
}

/* Nothing waits; but if peers are turned away, that may be for ever. */
static int look_again(struct bus *b)
{
	pthread_mutex_lock(&b->lock);
	const bool turned_away = b->turned_away;

	b->turned_away = false;
	if (turned_away)
		show(b);
	pthread_mutex_unlock(&b->lock);
	return turned_away && stuck(b) ? -ENOTRECOVERABLE : BUS_EMPTY;
}

int bus_recv(struct bus *b, struct buf *into)
{
	struct bus_note n = { 0 };
	/* Looked at first: what the pipe brought before a departure seen here is in nng's queue by
	 * now. */
	const bool noted = peek_note(b, &n);

	buf_reset(into);
	if (!b->current.id)
		return noted ? take_note(b, n) : look_again(b);
	for (int i = 0; i < BUS_EMPTIES; i++) {
		nng_msg *m = NULL;
		int r = take_message(b, &m);

		if (r == BUS_EMPTY)
			return noted ? take_note(b, n) : look_again(b);
		if (r)
			return r;
		const size_t len = nng_msg_len(m);

		if (len)
			r = buf_append(into, nng_msg_body(m), len);
		nng_msg_free(m);
		if (len)
			return r;
	}
	return BUS_EMPTY;
}

/* --- sending --- */

/* Under the lock. A listener's peer may have gone and another come, which the tool has not been
 * told of yet: what it has to say is not for that one. */
static bool is_current(const struct bus *b)
{
	return b->up && (!b->listener || b->live.id == b->current.id);
}

int bus_send(struct bus *b, struct span message)
{
	nng_msg *m;

	if (!message.len || message.len > b->route->max)
		return message.len ? -EMSGSIZE : -EINVAL;
	int r = nng_msg_alloc(&m, message.len);

	if (r)
		return errno_of(r);
	memcpy(nng_msg_body(m), message.data, message.len);
	/* Under the lock, so that nothing is queued for a peer after its queue was emptied. nng
	 * does not call back from here. */
	pthread_mutex_lock(&b->lock);
	r = is_current(b) ? errno_of(nng_sendmsg(b->sock, m, NNG_FLAG_NONBLOCK)) : -ENOTCONN;
	pthread_mutex_unlock(&b->lock);
	if (r)
		nng_msg_free(m);
	return r;
}

int bus_send_wait(struct bus *b, struct span message, int timeout_ms)
{
	const uint64_t until = clock_mono_ns() + (uint64_t)timeout_ms * 1000000u;

	for (;;) {
		int r = bus_send(b, message);

		if (r != -EAGAIN)
			return r;
		const uint64_t now = clock_mono_ns();

		if (now >= until)
			return -ETIMEDOUT;
		const uint64_t left_ms = (until - now) / 1000000u + 1;
		struct pollfd p = { .fd = b->send_fd, .events = POLLIN };

		/* A peer that goes does not show on this descriptor, so it is looked at now and
		 * then. */
		if (poll(&p, 1, left_ms < 50 ? (int)left_ms : 50) < 0 && errno != EINTR)
			return -errno;
	}
}

bool bus_connected(const struct bus *b)
{
	struct bus *w = (struct bus *)b;

	pthread_mutex_lock(&w->lock);
	const bool up = is_current(w);

	pthread_mutex_unlock(&w->lock);
	return up;
}

void bus_drop_peer(struct bus *b)
{
	/* nng_pipe_close in the middle of a message can hang nng's reaper for good. So the sockets
	 * below are shut down instead, and nng sees what it sees when a peer dies. */
	for (int fd = 3; fd < BUS_MAX_FD; fd++)
		if (is_ours(b, fd))
			(void)shutdown(fd, SHUT_RDWR);
}

int bus_finish(struct bus *b, int timeout_ms)
{
	const uint64_t until = clock_mono_ns() + (uint64_t)timeout_ms * 1000000u;
	struct buf ignored = BUF_INIT(0);
	int r;

	for (;;) {
		r = bus_recv(b, &ignored);
		if (r < 0 || r == BUS_PEER_WENT)
			break;
		if (r == BUS_EMPTY && !b->current.id) {
			r = -ENOTCONN;
			break;
		}
		const uint64_t now = clock_mono_ns();

		if (now >= until) {
			r = -ETIMEDOUT;
			break;
		}
		struct pollfd p = { .fd = b->epoll, .events = POLLIN };

		if (r == BUS_EMPTY && poll(&p, 1, (int)((until - now) / 1000000u) + 1) < 0 &&
		    errno != EINTR) {
			r = -errno;
			break;
		}
	}
	buf_done(&ignored);
	return r == BUS_PEER_WENT ? 0 : r;
}

int bus_path(enum bus_route_id route, const char *run_dir, const char *ending, char *ret,
	     size_t size)
{
	const int n = snprintf(ret, size, "%s/%s/%s.%s", run_dir, routes[route].listener,
			       routes[route].name, ending);

	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}
