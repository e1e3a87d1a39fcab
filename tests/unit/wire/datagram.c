/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/datagram.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/datagram-XXXXXX";

static void make_folder(void)
{
	char folder[64];

	cr_assert(mkdtemp(dir) != NULL);
	snprintf(folder, sizeof(folder), "%s/export", dir);
	cr_assert_eq(mkdir(folder, 0700), 0);
}

static void remove_folder(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/export/w", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/export", dir);
	rmdir(path);
	rmdir(dir);
}

TestSuite(datagram, .init = make_folder, .fini = remove_folder);

Test(datagram, datagrams_of_the_peer_arrive)
{
	struct datagram to = DATAGRAM_NONE, from = DATAGRAM_NONE;
	uint64_t n = 42, got = 0;

	cr_assert_eq(datagram_open(dir, "export", "w", &to), 0);
	cr_assert_eq(datagram_send(&to, &n, sizeof(n)), -ENOENT);
	cr_assert_eq(datagram_bind(dir, "export", "w", getuid(), &from), 0);
	cr_assert_eq(datagram_recv(&from, &got, sizeof(got)), -EAGAIN);
	cr_assert_eq(datagram_send(&to, &n, sizeof(n)), 0);
	cr_assert_eq(datagram_recv(&from, &got, sizeof(got)), 0);
	cr_assert_eq(got, 42);
	/* Another receiver takes its place. */
	datagram_done(&from);
	cr_assert_eq(datagram_send(&to, &n, sizeof(n)), -ECONNREFUSED);
	cr_assert_eq(datagram_bind(dir, "export", "w", getuid(), &from), 0);
	cr_assert_eq(datagram_send(&to, &n, sizeof(n)), 0);
	cr_assert_eq(datagram_recv(&from, &got, sizeof(got)), 0);
	datagram_done(&from);
	datagram_done(&to);
}

Test(datagram, datagrams_of_others_and_of_other_sizes_are_dropped)
{
	struct datagram to = DATAGRAM_NONE, from = DATAGRAM_NONE;
	uint64_t n[2] = { 1, 2 }, got = 0;

	cr_assert_eq(datagram_open(dir, "export", "w", &to), 0);
	cr_assert_eq(datagram_bind(dir, "export", "w", getuid() + 1, &from), 0);
	cr_assert_eq(datagram_send(&to, n, sizeof(n[0])), 0);
	cr_assert_eq(datagram_recv(&from, &got, sizeof(got)), -EAGAIN);
	from.peer = getuid();
	cr_assert_eq(datagram_send(&to, n, sizeof(n)), 0);
	cr_assert_eq(datagram_send(&to, n, 3), 0);
	cr_assert_eq(datagram_recv(&from, &got, sizeof(got)), -EAGAIN);
	datagram_done(&from);
	datagram_done(&to);
}

Test(datagram, a_full_queue_does_not_block)
{
	struct datagram to = DATAGRAM_NONE, from = DATAGRAM_NONE;
	uint64_t n = 1;
	int r = 0;

	cr_assert_eq(datagram_open(dir, "export", "w", &to), 0);
	cr_assert_eq(datagram_bind(dir, "export", "w", getuid(), &from), 0);
	for (int i = 0; i < 100000 && !r; i++)
		r = datagram_send(&to, &n, sizeof(n));
	cr_assert_eq(r, -EAGAIN);
	datagram_done(&from);
	datagram_done(&to);
}
