/* SPDX-License-Identifier: Apache-2.0 */
/* Source: unix(7), SO_PASSCRED: the kernel adds the sender's ids to each datagram. */
#include "common/wire/datagram.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int new_socket(const char *run_dir, const char *folder, const char *name,
		      struct datagram *ret)
{
	struct datagram d = { .to.sun_family = AF_UNIX };
	const int n = snprintf(d.to.sun_path, sizeof(d.to.sun_path), "%s/%s/%s", run_dir, folder,
			       name);

	if (n < 0 || (size_t)n >= sizeof(d.to.sun_path))
		return -ENAMETOOLONG;
	d.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d.fd < 0)
		return -errno;
	*ret = d;
	return 0;
}

int datagram_open(const char *run_dir, const char *folder, const char *name, struct datagram *ret)
{
	return new_socket(run_dir, folder, name, ret);
}

int datagram_bind(const char *run_dir, const char *folder, const char *name, uid_t peer,
		  struct datagram *ret)
{
	struct datagram d;
	const int one = 1;
	int r = new_socket(run_dir, folder, name, &d);

	if (r)
		return r;
	d.peer = peer;
	r = bind(d.fd, (struct sockaddr *)&d.to, sizeof(d.to));
	/* An earlier run left the socket; only we use the folder. In a cell we cannot look at the
	 * file first. */
	if (r && errno == EADDRINUSE && !unlink(d.to.sun_path))
		r = bind(d.fd, (struct sockaddr *)&d.to, sizeof(d.to));
	if (r || setsockopt(d.fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) ||
	    chmod(d.to.sun_path, 0660)) {
		r = -errno;
		datagram_done(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void datagram_done(struct datagram *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

int datagram_send(const struct datagram *d, const void *data, size_t size)
{
	struct iovec v = { .iov_base = (void *)data, .iov_len = size };
	const struct msghdr m = { .msg_name = (void *)&d->to,
				  .msg_namelen = sizeof(d->to),
				  .msg_iov = &v,
				  .msg_iovlen = 1 };

	if (d->fd < 0)
		return -ENOTCONN;
	return sendmsg(d->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Whether the kernel reports this user as the sender. */
static bool is_from(struct msghdr *m, uid_t peer)
{
	bool from = false;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct ucred who;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
		    c->cmsg_len != CMSG_LEN(sizeof(who)))
			continue;
		memcpy(&who, CMSG_DATA(c), sizeof(who));
		from = who.uid == peer;
	}
	return from;
}

int datagram_recv(const struct datagram *d, void *ret, size_t size)
{
	/* There is only room for the ids, so the kernel closes descriptors that come with them. */
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;

	if (d->fd < 0)
		return -EAGAIN;
	for (;;) {
		struct iovec v = { .iov_base = ret, .iov_len = size };
		struct msghdr m = { .msg_iov = &v,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control) };
		const ssize_t n = recvmsg(d->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n == size && !(m.msg_flags & MSG_TRUNC) && is_from(&m, d->peer))
			return 0;
	}
}
