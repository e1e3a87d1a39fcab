/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/bus/scm.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(SCM_FDS * sizeof(int))];
};

ssize_t scm_send(int socket, const void *data, size_t size, const int *fds, size_t count, int flags)
{
	union control control = { 0 };
	struct iovec v = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t n;

	assert(count <= SCM_FDS);
	if (count) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	}
	do
		n = sendmsg(socket, &m, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t scm_receive(int socket, void *data, size_t size, int *ret_fds, size_t max, int flags)
{
	union control control = { 0 };
	struct iovec v = { .iov_base = data, .iov_len = size };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	size_t kept = 0;
	ssize_t n;

	for (size_t i = 0; i < max; i++)
		ret_fds[i] = -1;
	do
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		const size_t came = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < came; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (kept < max)
				ret_fds[kept++] = fd;
			else
				close(fd);
		}
	}
	return n;
}
