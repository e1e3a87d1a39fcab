/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of profpipe to the service manager that started it (sd_notify(3)): one datagram of
 * lines to the socket of $NOTIFY_SOCKET. The protocol is so small that libsystemd, which links five
 * other libraries, would be the larger part. Without such a manager nothing is sent.
 */
#ifndef PROFPIPE_RUN_NOTIFY_H
#define PROFPIPE_RUN_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	int fd; /* -1: nobody wants to know */
	struct sockaddr_un to;
	socklen_t to_len;
	uint64_t
		watchdog_ns; /* the manager ends a process that is silent for this long; 0: never */
};
#define NOTIFY_NONE ((struct notify){ .fd = -1 })

/* Finds the manager in the environment. -errno, -EINVAL: $NOTIFY_SOCKET names no socket that can be
 * used; *n is NOTIFY_NONE then. */
int notify_open(struct notify *n);
/* Sends lines, as "READY=1\nSTATUS=sampling". A manager that does not listen is no error. */
void notify_send(const struct notify *n, const char *lines);
void notify_close(struct notify *n);

#endif
