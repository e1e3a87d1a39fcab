/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/closing.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/system/clock.h"

#define LINGER_S 3

/* A socket whose close() takes LINGER_S seconds: its other end does not read the data that was
 * sent. */
static int slow_to_close(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	const int small = 4096;
	socklen_t size = sizeof(a);
	const int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	static char some[1 << 22];

	cr_assert_eq(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&a, &size), 0);
	cr_assert_eq(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_geq(accept(listener, NULL, NULL), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	while (send(fd, some, sizeof(some), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/* Whether the other end of a pipe is closed within `ms`. */
static bool ends(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && p.revents & POLLHUP;
}

Test(closing, all_is_closed_at_once_before_the_threads_are_there)
{
	int p[2];

	cr_assert_eq(pipe(p), 0);
	closing_give(-1);
	closing_give(p[1]);
	cr_assert(ends(p[0], 0));
}

Test(closing, a_slow_close_delays_neither_the_caller_nor_other_closes)
{
	int p[2];

	cr_assert_eq(closing_start(), 0);
	const int slow = slow_to_close(), slower = slow_to_close();
	const uint64_t began_ns = clock_mono_ns();

	closing_give(slow);
	closing_give(slower);
	usleep(50000);
	for (int i = 0; i < 10; i++) {
		cr_assert_eq(pipe(p), 0);
		closing_give(p[1]);
		cr_assert(ends(p[0], 1000));
	}
	cr_assert_lt(clock_mono_ns() - began_ns, LINGER_S * 1000000000ull * 3 / 4);
}

/* More than may wait, so some are closed by the caller. */
Test(closing, none_of_many_is_left_open)
{
	int p[2];

	cr_assert_eq(closing_start(), 0);
	cr_assert_eq(pipe(p), 0);
	for (unsigned i = 0; i < 20 * CLOSING_MAX; i++) {
		const int fd = dup(p[1]);

		cr_assert_geq(fd, 0);
		closing_give(fd);
	}
	close(p[1]);
	cr_assert(ends(p[0], 10000));
}

Test(closing, a_device_that_hangs_leaves_room_for_others)
{
	int p[2];

	cr_assert_eq(closing_start(), 0);
	const int slow = slow_to_close(), slower = slow_to_close(), last = slow_to_close();
	const uint64_t began_ns = clock_mono_ns();

	closing_give(slow);
	closing_give(slower); /* waits for the first */
	cr_assert_eq(pipe(p), 0);
	for (unsigned i = 0; i < 2 * CLOSING_MAX; i++)
		closing_give(dup(p[1]));
	close(p[1]);
	cr_assert(ends(p[0], 1000));
	closing_give(last);
	cr_assert_lt(clock_mono_ns() - began_ns, LINGER_S * 1000000000ull * 3 / 4);
}
