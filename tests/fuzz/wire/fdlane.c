/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: for either side of the descriptor lane, what its peer sends, and what the kernel returns
 * from each call. This includes:
 * - acknowledgements of descriptors that were never sent
 * - packets of wrong size, with no or several descriptors, or with other control messages
 * - peers that connect, disconnect or belong to others
 *
 * Each descriptor is closed once and none is left, at most FDLANE_IN_FLIGHT are under way, and
 * every result is one that the header names.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/wire/bus/fdlane.h"
#include "tests/fuzz/must.h"

#define UID 1000
#define FAR_FD 1000000 /* a descriptor number that is not open, nor is any above */
#define FDS 4096
#define MAX_STEPS 256

static struct {
	struct span rest;
	bool open[FDS], others[FDS]; /* others: the peer has a wrong uid */
	int next_fd;
	unsigned open_count, in_flight;
	uint64_t sent[FDLANE_IN_FLIGHT];
} kernel;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t choose(void)
{
	uint8_t b = 0;

	(void)span_read(&kernel.rest, &b, 1);
	return b;
}

static int fail(int error)
{
	errno = error;
	return -1;
}

static int new_fd(void)
{
	if (kernel.next_fd == FDS)
		return fail(EMFILE);
	kernel.open[kernel.next_fd] = true;
	kernel.others[kernel.next_fd] = false;
	kernel.open_count++;
	return FAR_FD + kernel.next_fd++;
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
	must(fd >= FAR_FD && kernel.open[fd - FAR_FD]);
	kernel.open[fd - FAR_FD] = false;
	kernel.open_count--;
	return 0;
}

int __wrap_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
	return choose() == 0xff ? fail(EMFILE) : new_fd();
}

int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
	return choose() == 0xff ? fail(EMFILE) : new_fd();
}

int __wrap_epoll_ctl(int set, int what, int fd, struct epoll_event *e);
int __wrap_epoll_ctl(int set, int what, int fd, struct epoll_event *e)
{
	must(kernel.open[fd - FAR_FD]);
	return choose() == 0xff ? fail(ENOSPC) : 0;
}

int __wrap_bind(int fd, const struct sockaddr *a, socklen_t n);
int __wrap_bind(int fd, const struct sockaddr *a, socklen_t n)
{
	return choose() == 0xff ? fail(EADDRINUSE) : 0;
}

int __wrap_listen(int fd, int n);
int __wrap_listen(int fd, int n)
{
	return choose() == 0xff ? fail(EADDRINUSE) : 0;
}

int __wrap_chmod(const char *path, mode_t mode);
int __wrap_chmod(const char *path, mode_t mode)
{
	return 0;
}

int __wrap_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st)
{
	st->st_mode = choose() & 1 ? S_IFSOCK : S_IFREG;
	return 0;
}

int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
	return 0;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout)
{
	return 0;
}

int __wrap_connect(int fd, const struct sockaddr *a, socklen_t n);
int __wrap_connect(int fd, const struct sockaddr *a, socklen_t n)
{
	static const int errors[] = { ECONNREFUSED, ENOENT, EAGAIN, EACCES };
	const uint8_t how = choose();

	kernel.others[fd - FAR_FD] = how & 1;
	return how >= 0xfc ? fail(errors[how & 3]) : 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *to, socklen_t *n);
int __wrap_getsockopt(int fd, int level, int name, void *to, socklen_t *n)
{
	struct ucred c = { .uid = kernel.others[fd - FAR_FD] ? UID + 1 : UID };

	must(kernel.open[fd - FAR_FD] && *n == sizeof(c));
	memcpy(to, &c, sizeof(c));
	return 0;
}

int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags);
int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
	static const int errors[] = { EAGAIN, EINTR, ECONNABORTED, EMFILE, EAGAIN, EINVAL };
	const uint8_t how = choose() % 8;

	if (how < 6)
		return fail(errors[how]);
	const int peer = new_fd();

	if (peer >= 0)
		kernel.others[peer - FAR_FD] = how == 7;
	return peer;
}

/* The listener receives acknowledgements. */
ssize_t __wrap_recv(int fd, void *to, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t n, int flags)
{
	static const int errors[] = { EAGAIN, EINTR, ECONNRESET, EAGAIN };
	uint64_t id[2] = { 0 };
	const uint8_t how = choose();

	must(kernel.open[fd - FAR_FD] && n == sizeof(id));
	switch (how % 8) {
	case 4:
		id[0] = kernel.in_flight ? kernel.sent[how / 8 % kernel.in_flight] : how;
		memcpy(to, id, 8);
		return 8;
	case 5:
		id[0] = choose();
		memcpy(to, id, 8);
		return 8;
	case 6:
		return 0;
	case 7:
		memcpy(to, id, n);
		return choose() % (ssize_t)(n + 1);
	default:
		return fail(errors[how % 8]);
	}
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	static const int errors[] = { EAGAIN,	  ENOBUFS,  ETOOMANYREFS, EPIPE,
				      ECONNRESET, ENOTCONN, EINTR,	  EIO };
	const uint8_t how = choose();
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);

	must(kernel.open[fd - FAR_FD] && m->msg_iov[0].iov_len == 8 && c &&
	     c->cmsg_len == CMSG_LEN(sizeof(int)));
	if (how >= 0xf0)
		return how & 8 ? 4 : fail(errors[how & 7]);
	return 8;
}

/* The dialer receives packets. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	static const int errors[] = { EAGAIN, EINTR, ECONNRESET, ENOBUFS };
	const uint8_t how = choose(), what = choose();
	const size_t room = m->msg_controllen;
	/* As many as there is room for, like the kernel. */
	size_t count = what & 3;
	const size_t fit = room < CMSG_LEN(0) ? 0 : (room - CMSG_LEN(0)) / sizeof(int);

	must(kernel.open[fd - FAR_FD]);
	if (how < 4)
		return fail(errors[how]);
	memset(m->msg_iov[0].iov_base, how, m->msg_iov[0].iov_len);
	m->msg_flags = count > fit ? MSG_CTRUNC : 0;
	count = count < fit ? count : fit;
	m->msg_controllen = 0;
	if (what & 4 && room >= CMSG_LEN(0)) {
		/* A control message that is not one of descriptors. */
		struct cmsghdr c = { .cmsg_len = CMSG_LEN(4),
				     .cmsg_level = SOL_SOCKET,
				     .cmsg_type = SCM_CREDENTIALS };

		memcpy(m->msg_control, &c, sizeof(c));
		m->msg_controllen = CMSG_LEN(4);
	} else if (count) {
		struct cmsghdr c = { .cmsg_len = CMSG_LEN(count * sizeof(int)),
				     .cmsg_level = SOL_SOCKET,
				     .cmsg_type = SCM_RIGHTS };

		memcpy(m->msg_control, &c, sizeof(c));
		for (size_t i = 0; i < count; i++) {
			const int given = new_fd();

			memcpy((char *)m->msg_control + CMSG_LEN(i * sizeof(int)), &given,
			       sizeof(given));
		}
		m->msg_controllen = c.cmsg_len;
	}
	/* Mostly of the right length. */
	return how & 0x80 ? 8 : how % (ssize_t)(m->msg_iov[0].iov_len + 1);
}

ssize_t __wrap_send(int fd, const void *from, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *from, size_t n, int flags)
{
	const uint8_t how = choose();

	must(kernel.open[fd - FAR_FD] && n == 8);
	return how >= 0xf0 ? fail(how & 1 ? EAGAIN : EPIPE) : 8;
}

/* --- both sides --- */

static void forget(uint64_t id)
{
	for (unsigned i = 0; i < kernel.in_flight; i++) {
		if (kernel.sent[i] == id)
			kernel.sent[i] = kernel.sent[--kernel.in_flight];
	}
}

static void listen_and_send(void)
{
	struct fdlane *l;
	uint64_t id = 0;

	if (fdlane_listen(BUSROUTE_FILES, "/nowhere", UID, &l))
		return;
	const int lent = new_fd();

	for (int i = 0; i < MAX_STEPS && kernel.rest.len; i++) {
		if (choose() & 1) {
			must(fdlane_poll(l) <= 0);
			/* The lane may take any of these; assume the first. */
			if (kernel.in_flight)
				forget(kernel.sent[0]);
			continue;
		}
		const int r = fdlane_send(l, ++id, lent);

		must(r <= 0);
		if (!r && kernel.in_flight < FDLANE_IN_FLIGHT)
			kernel.sent[kernel.in_flight++] = id;
		must(fdlane_fd(l) >= FAR_FD);
	}
	fdlane_free(l);
	close(lent);
}

static void dial_and_take(void)
{
	struct fdlane *l;

	if (fdlane_dial(BUSROUTE_FILES, "/nowhere", UID, 0, &l))
		return;
	for (int i = 0; i < MAX_STEPS && kernel.rest.len; i++) {
		uint64_t id = 0;
		int fd = -1;
		const int r = fdlane_recv(l, &id, &fd);

		must(r <= 0 && (r != 0 || fd >= FAR_FD) && (r == 0 || fd < 0));
		if (!r)
			close(fd);
		if (r == -EPROTO || r == -ENOTCONN)
			break;
	}
	fdlane_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	kernel.rest = (struct span){ .data = data + 1, .len = size - 1 };
	kernel.next_fd = 0;
	kernel.open_count = kernel.in_flight = 0;
	if (data[0] & 1)
		listen_and_send();
	else
		dial_and_take();
	must(kernel.open_count == 0);
	return 0;
}
