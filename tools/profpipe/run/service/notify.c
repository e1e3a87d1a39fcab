/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/service/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/files/fd.h"
#include "common/base/text/decimal.h"

/* Reads a number from the environment; 0: none. */
static uint64_t number(const char *name)
{
	const char *text = getenv(name);
	uint64_t n;

	return text && decimal_parse(text, &n) && n < UINT64_MAX ? n : 0;
}

/* $WATCHDOG_USEC is valid only for the process in $WATCHDOG_PID. */
static uint64_t watchdog_ns(void)
{
	const uint64_t us = number("WATCHDOG_USEC"), pid = number("WATCHDOG_PID");

	if ((pid && pid != (uint64_t)getpid()) || us > UINT64_MAX / 1000)
		return 0;
	return us * 1000;
}

int notify_open(struct notify *n)
{
	const char *path = getenv("NOTIFY_SOCKET");
	const size_t len = path ? strlen(path) : 0;

	*n = NOTIFY_NONE;
	if (!len)
		return 0;
	/* A leading @ stands for an abstract socket. */
	if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof(n->to.sun_path))
		return -EINVAL;
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, path, len + 1);
	n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (path[0] == '/'));
	if (path[0] == '@')
		n->to.sun_path[0] = '\0';
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->fd < 0)
		return -errno;
	n->watchdog_ns = watchdog_ns();
	return 0;
}

void notify_send(const struct notify *n, const char *lines)
{
	if (n->fd >= 0)
		(void)sendto(n->fd, lines, strlen(lines), MSG_NOSIGNAL,
			     (const struct sockaddr *)&n->to, n->to_len);
}

void notify_close(struct notify *n)
{
	fd_close(&n->fd);
}
