/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet is an 8-byte id with one descriptor; its acknowledgement is only the id. Source:
 * unix(7), SCM_RIGHTS; cmsg(3).
 *
 * A descriptor that was sent but not received counts against the sender's user (ETOOMANYREFS) and
 * keeps the file open, so their number is limited. If the receiver is out of descriptors, the
 * kernel delivers the packet without one (MSG_CTRUNC).
 */
#include "common/wire/bus/fdlane.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/bus/scm.h"

struct fdlane {
	bool listener;
	uid_t uid;     /* the peer's */
	int epoll;     /* of a listener: watches both sockets; else -1 */
	int listening; /* of a listener; else -1 */
	int peer;      /* -1 without one */
	uint64_t in_flight[FDLANE_IN_FLIGHT];
	unsigned count;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static void drop_peer(struct fdlane *l)
{
	if (l->peer >= 0)
		close(l->peer); /* this also removes it from the epoll set */
	l->peer = -1;
	l->count = 0;
}

void fdlane_free(struct fdlane *l)
{
	if (!l)
		return;
	drop_peer(l);
	if (l->listening >= 0) {
		close(l->listening);
		unlink(l->path);
	}
	if (l->epoll >= 0)
		close(l->epoll);
	free(l);
}

static void fdlane_freep(struct fdlane **l)
{
	fdlane_free(*l);
}

static int fdlane_new(enum busroute_id route, const char *run_dir, bool listener, uid_t uid,
		      struct fdlane **ret)
{
	struct fdlane *l = malloc(sizeof(*l));

	if (!l)
		return -ENOMEM;
	*l = (struct fdlane){
		.listener = listener, .uid = uid, .epoll = -1, .listening = -1, .peer = -1
	};
	int r = busroute_path(route, run_dir, "fds", l->path, sizeof(l->path));

	if (r) {
		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

static struct sockaddr_un address_of(const struct fdlane *l)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	memcpy(a.sun_path, l->path, sizeof(a.sun_path));
	return a;
}

static bool is_peer(int fd, uid_t uid)
{
	struct ucred c;
	socklen_t len = sizeof(c);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len) == 0 && c.uid == uid;
}

static int watch(struct fdlane *l, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

int fdlane_listen(enum busroute_id route, const char *run_dir, uid_t peer, struct fdlane **ret)
{
	__attribute__((cleanup(fdlane_freep))) struct fdlane *l = NULL;
	int r = fdlane_new(route, run_dir, true, peer, &l);

	if (r)
		return r;
	struct sockaddr_un a = address_of(l);
	struct stat st;

	/* An earlier run left the socket; only we use the folder. */
	if (lstat(l->path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(l->path);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		return -errno;
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* The socket must have its mode from the beginning: a peer that is refused once gives
	 * up. */
	const mode_t umask_before = umask(0117);

	r = bind(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
	umask(umask_before);
	if (r) {
		close(fd);
		return r;
	}
	l->listening = fd;
	if (listen(fd, 4))
		return -errno;
	r = watch(l, fd);
	if (r)
		return r;
	*ret = l;
	l = NULL;
	return 0;
}

static int dial_once(struct fdlane *l)
{
	struct sockaddr_un a = address_of(l);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	int r = connect(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;

	if (!r && !is_peer(fd, l->uid))
		r = -EPERM;
	if (r)
		close(fd);
	else
		l->peer = fd;
	return r;
}

int fdlane_dial(enum busroute_id route, const char *run_dir, uid_t peer, int timeout_ms,
		struct fdlane **ret)
{
	__attribute__((cleanup(fdlane_freep))) struct fdlane *l = NULL;
	const uint64_t until = clock_mono_ns() + (uint64_t)timeout_ms * 1000000u;
	int r = fdlane_new(route, run_dir, false, peer, &l);

	if (r)
		return r;
	/* The listener may still come: now its socket is missing, does not listen, or has a full
	 * queue. */
	for (r = dial_once(l); r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN;
	     r = dial_once(l)) {
		if (clock_mono_ns() >= until)
			return -ETIMEDOUT;
		poll(NULL, 0, 5);
	}
	if (r)
		return r;
	*ret = l;
	l = NULL;
	return 0;
}

int fdlane_fd(const struct fdlane *l)
{
	return l->listener ? l->epoll : l->peer;
}

static bool take_ack(struct fdlane *l, uint64_t id)
{
	for (unsigned i = 0; i < l->count; i++) {
		if (l->in_flight[i] == id) {
			l->in_flight[i] = l->in_flight[--l->count];
			return true;
		}
	}
	return false;
}

/* Drops a peer that closed, or that acknowledges something we did not send. */
static void take_acks(struct fdlane *l)
{
	while (l->peer >= 0) {
		uint64_t ack[2];
		const ssize_t n = recv(l->peer, ack, sizeof(ack), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n != sizeof(ack[0]) || !take_ack(l, ack[0]))
			drop_peer(l);
	}
}

uint32_t fdlane_pid(const struct fdlane *l)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return l->peer >= 0 && !getsockopt(l->peer, SOL_SOCKET, SO_PEERCRED, &c, &n) && c.pid > 0
		       ? (uint32_t)c.pid
		       : 0;
}

void fdlane_drop(struct fdlane *l)
{
	drop_peer(l);
}

int fdlane_poll(struct fdlane *l)
{
	struct epoll_event e;

	/* accept4 is dear even if nobody connects: it makes a socket first. */
	if (epoll_wait(l->epoll, &e, 1, 0) == 0)
		return 0;
	take_acks(l);
	for (;;) {
		const int fd = accept4(l->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return errno == EAGAIN ? 0 : -errno;
		/* Only one peer at a time. The present one is alive: otherwise take_acks would have
		 * dropped it. */
		if (l->peer >= 0 || !is_peer(fd, l->uid)) {
			close(fd);
			continue;
		}
		l->peer = fd;
		int r = watch(l, fd);

		if (r) {
			drop_peer(l);
			return r;
		}
		take_acks(l);
	}
}

int fdlane_send(struct fdlane *l, uint64_t id, int fd)
{
	if (l->peer < 0)
		return -ENOTCONN;
	if (l->count == FDLANE_IN_FLIGHT)
		return -EAGAIN;
	const ssize_t n = scm_send(l->peer, &id, sizeof(id), &fd, 1, MSG_DONTWAIT);

	if (n == sizeof(id)) {
		l->in_flight[l->count++] = id;
		return 0;
	}
	if (n >= 0)
		return -EIO;
	switch (n) {
	case -EAGAIN:
	case -ENOBUFS:
	case -ETOOMANYREFS:
		return -EAGAIN;
	case -EPIPE:
	case -ECONNRESET:
	case -ENOTCONN:
		drop_peer(l);
		return -ENOTCONN;
	default:
		return (int)n;
	}
}

int fdlane_recv(struct fdlane *l, uint64_t *ret_id, int *ret_fd)
{
	uint64_t packet[2]; /* larger than a packet, to detect longer ones */
	int fd;
	const ssize_t n = scm_receive(l->peer, packet, sizeof(packet), &fd, 1, MSG_DONTWAIT);

	if (n < 0)
		return n == -ECONNRESET ? -ENOTCONN : (int)n;
	if (n != sizeof(packet[0])) {
		if (fd >= 0)
			close(fd);
		return n ? -EPROTO : -ENOTCONN;
	}
	/* At most FDLANE_IN_FLIGHT of these are unread, so there is room. If the sender is gone,
	 * the next call notices it. */
	const ssize_t acked = send(l->peer, packet, sizeof(packet[0]), MSG_NOSIGNAL | MSG_DONTWAIT);

	if (acked < 0 && errno == EAGAIN) {
		if (fd >= 0)
			close(fd);
		return -EPROTO;
	}
	*ret_id = packet[0];
	*ret_fd = fd;
	return fd >= 0 ? 0 : -EBADMSG;
}
