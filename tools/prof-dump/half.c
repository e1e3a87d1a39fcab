/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/half.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD offsetof(struct half_message, text)

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int half_send(int socket, const struct half_message *m, int fd)
{
	struct iovec v = { .iov_base = (void *)m, .iov_len = HEAD + m->text_len };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };
	union control control = { 0 };
	ssize_t n;

	if (m->text_len >= HALF_TEXT)
		return -ENAMETOOLONG;
	if (fd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	do
		n = sendmsg(socket, &h, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int half_receive(int socket, int timeout_ms, struct half_message *ret, int *ret_fd)
{
	struct iovec v = { .iov_base = ret, .iov_len = HEAD + HALF_TEXT - 1 };
	union control control = { 0 };
	struct msghdr h = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct pollfd p = { .fd = socket, .events = POLLIN };
	int fd = -1, ready = 1;
	ssize_t n = 0;

	if (timeout_ms >= 0) {
		do
			ready = poll(&p, 1, timeout_ms);
		while (ready < 0 && errno == EINTR);
	}
	if (ready <= 0)
		return ready ? -errno : -ETIMEDOUT;
	do
		n = recvmsg(socket, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (n == 0)
		return -EPIPE;
	if ((size_t)n < HEAD || ret->text_len != (size_t)n - HEAD) {
		if (fd >= 0)
			close(fd);
		return -EPROTO;
	}
	ret->text[ret->text_len] = '\0';
	*ret_fd = fd;
	return 0;
}
