/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications to the service manager that started profpipe (sd_notify(3)): one datagram with
 * lines of text to the socket in $NOTIFY_SOCKET. The protocol is tiny, but libsystemd would bring
 * in five other libraries. Without such a manager nothing is sent.
 */
#ifndef PROFPIPE_RUN_SERVICE_NOTIFY_H
#define PROFPIPE_RUN_SERVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	int fd; /* -1: no manager wants notifications */
	struct sockaddr_un to;
	socklen_t to_len;
	/* The manager kills a process that is silent for this long; 0: never. */
	uint64_t watchdog_ns;
};
#define NOTIFY_NONE ((struct notify){ .fd = -1 })

/* Finds the manager in the environment. Returns -errno, or -EINVAL if $NOTIFY_SOCKET names no
 * usable socket; *n is then NOTIFY_NONE. */
int notify_open(struct notify *n);
/* Sends lines, such as "READY=1\nSTATUS=sampling". Errors are ignored: the manager may not be
 * listening. */
void notify_send(const struct notify *n, const char *lines);
void notify_close(struct notify *n);

#endif
