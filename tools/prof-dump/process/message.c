/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/process/message.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>
#include "common/wire/bus/scm.h"

#define HEAD offsetof(struct message, text)

int message_send(int socket, const struct message *m, int fd)
{
	if (m->text_len >= MESSAGE_TEXT)
		return -ENAMETOOLONG;
	const ssize_t n = scm_send(socket, m, HEAD + m->text_len, &fd, fd >= 0, 0);

	return n < 0 ? (int)n : 0;
}

int message_receive(int socket, int timeout_ms, struct message *ret, int *ret_fd)
{
	struct pollfd p = { .fd = socket, .events = POLLIN };
	int fd, ready = 1;

	if (timeout_ms >= 0) {
		do
			ready = poll(&p, 1, timeout_ms);
		while (ready < 0 && errno == EINTR);
	}
	if (ready <= 0)
		return ready ? -errno : -ETIMEDOUT;
	const ssize_t n = scm_receive(socket, ret, HEAD + MESSAGE_TEXT - 1, &fd, 1, 0);

	if (n < 0)
		return n == -ECONNRESET ? -EPIPE : (int)n;
	if ((size_t)n < HEAD || ret->text_len != (size_t)n - HEAD) {
		if (fd >= 0)
			close(fd);
		return n ? -EPROTO : -EPIPE;
	}
	ret->text[ret->text_len] = '\0';
	*ret_fd = fd;
	return 0;
}
