/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/service/notify.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A manager that listens on an abstract socket. */
static int listen_as(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path + 1, name, strlen(name));
	cr_assert_eq(bind(fd, (struct sockaddr *)&a,
			  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
		     0);
	return fd;
}

Test(notify, the_manager_gets_one_datagram)
{
	char name[64], at[66], text[64];
	struct notify n;

	snprintf(name, sizeof(name), "profpipe-notify-%d", getpid());
	const int fd = listen_as(name);

	snprintf(at, sizeof(at), "@%s", name);
	setenv("NOTIFY_SOCKET", at, 1);
	setenv("WATCHDOG_USEC", "30000000", 1);
	cr_assert_eq(notify_open(&n), 0);
	cr_assert_eq(n.watchdog_ns, 30000000000ull);
	notify_send(&n, "READY=1\nSTATUS=x");
	const ssize_t got = recv(fd, text, sizeof(text), MSG_DONTWAIT);

	cr_assert_eq(got, 16);
	cr_assert(memcmp(text, "READY=1\nSTATUS=x", 16) == 0);
	close(fd);
	/* It has gone. */
	notify_send(&n, "STOPPING=1");
	notify_close(&n);
	cr_assert_eq(n.fd, -1);
}

Test(notify, without_a_manager_nothing_is_sent)
{
	struct notify n;

	unsetenv("NOTIFY_SOCKET");
	cr_assert_eq(notify_open(&n), 0);
	cr_assert_eq(n.fd, -1);
	notify_send(&n, "READY=1");
	notify_close(&n);
}

Test(notify, other_addresses_are_refused)
{
	char path[200];
	struct notify n;

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	setenv("NOTIFY_SOCKET", path, 1);
	cr_assert_eq(notify_open(&n), -EINVAL);
	setenv("NOTIFY_SOCKET", "vsock:2:1", 1);
	cr_assert_eq(notify_open(&n), -EINVAL);
	cr_assert_eq(n.fd, -1);
}

Test(notify, the_watchdog_of_another_process_is_not_ours)
{
	struct notify n;

	setenv("NOTIFY_SOCKET", "@x", 1);
	setenv("WATCHDOG_USEC", "1000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	cr_assert_eq(notify_open(&n), 0);
	cr_assert_eq(n.watchdog_ns, 0);
	notify_close(&n);
}
