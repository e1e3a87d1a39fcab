/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/bus/scm.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int ours, theirs;

static void make_pair(void)
{
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	ours = fds[0];
	theirs = fds[1];
}

TestSuite(scm, .init = make_pair);

/* The lowest free descriptor: one that is left open changes it. */
static int next_fd(void)
{
	const int fd = dup(ours);

	close(fd);
	return fd;
}

static int file(void)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

static bool is_null_device(int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat("/dev/null", &b) == 0 && a.st_rdev == b.st_rdev;
}

Test(scm, descriptors_arrive_in_order_and_are_closed_on_exec)
{
	const int sent[] = { file(), theirs };
	char bytes[8];
	int got[2];

	cr_assert_eq(scm_send(ours, "hello", 5, sent, 2, MSG_DONTWAIT), 5);
	cr_assert_eq(scm_receive(theirs, bytes, sizeof(bytes), got, 2, MSG_DONTWAIT), 5);
	cr_expect_arr_eq(bytes, "hello", 5);
	cr_expect(is_null_device(got[0]));
	cr_expect(got[1] >= 0 && !is_null_device(got[1]));
	cr_expect_eq(fcntl(got[0], F_GETFD), FD_CLOEXEC);
	cr_expect_eq(fcntl(got[1], F_GETFD), FD_CLOEXEC);
}

Test(scm, a_message_without_descriptors_yields_none)
{
	char byte;
	int got[2] = { 7, 7 };

	cr_assert_eq(scm_send(ours, "x", 1, NULL, 0, 0), 1);
	cr_assert_eq(scm_receive(theirs, &byte, 1, got, 2, 0), 1);
	cr_expect_eq(got[0], -1);
	cr_expect_eq(got[1], -1);
}

Test(scm, more_than_are_wanted_are_closed)
{
	const int sent[] = { file(), file() };
	char byte;
	int got;

	cr_assert_eq(scm_send(ours, "x", 1, sent, 2, 0), 1);
	const int before = next_fd();

	cr_assert_eq(scm_receive(theirs, &byte, 1, &got, 1, 0), 1);
	cr_expect_eq(got, before);
	close(got);
	cr_expect_eq(next_fd(), before);
}

/* The most descriptors that a stranger can send. They exceed the room, and the kernel keeps the
 * rest. */
Test(scm, a_peer_that_sends_many_descriptors_leaves_none_open)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(100 * sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(100 * sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec v = { .iov_base = (void *)"x", .iov_len = 1 };
	const struct msghdr m = { .msg_iov = &v,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	char byte;
	int got[2];

	for (int i = 0; i < 100; i++)
		memcpy(CMSG_DATA(&control.head) + (size_t)i * sizeof(int), &ours, sizeof(int));
	cr_assert_eq(sendmsg(ours, &m, 0), 1);
	const int before = next_fd();

	cr_assert_eq(scm_receive(theirs, &byte, 1, got, 2, 0), 1);
	close(got[0]);
	close(got[1]);
	cr_expect_eq(next_fd(), before);
}

Test(scm, an_end_and_an_error_are_told_apart)
{
	char byte;
	int got;

	cr_expect_eq(scm_receive(theirs, &byte, 1, &got, 1, MSG_DONTWAIT), -EAGAIN);
	close(ours);
	cr_expect_eq(scm_receive(theirs, &byte, 1, &got, 1, MSG_DONTWAIT), 0);
	cr_expect_eq(got, -1);
	cr_expect_eq(scm_send(theirs, "x", 1, NULL, 0, 0), -EPIPE);
}
