/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/bus/fdlane.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "tests/unit/run_dir.h"

TestSuite(fdlane, .init = make_run_dir, .fini = remove_run_dir, .timeout = 30);

struct ends {
	struct fdlane *listener, *dialer;
};

static struct ends open_ends(void)
{
	struct ends e;

	cr_assert_eq(fdlane_listen(BUSROUTE_FILES, run_dir, getuid(), &e.listener), 0);
	cr_assert_eq(fdlane_dial(BUSROUTE_FILES, run_dir, getuid(), 1000, &e.dialer), 0);
	struct pollfd p = { .fd = fdlane_fd(e.listener), .events = POLLIN };

	cr_assert_eq(poll(&p, 1, 1000), 1);
	cr_assert_eq(fdlane_poll(e.listener), 0);
	return e;
}

static void close_ends(struct ends e)
{
	fdlane_free(e.dialer);
	fdlane_free(e.listener);
}

Test(fdlane, descriptor_arrives_with_its_id_and_is_the_same_file)
{
	struct ends e = open_ends();
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat a, b;
	uint64_t id = 0;
	int got = -1;

	cr_assert_eq(fdlane_send(e.listener, 42, fd), 0);
	cr_assert_eq(fdlane_recv(e.dialer, &id, &got), 0);
	cr_assert_eq(id, 42);
	cr_assert_eq(fstat(fd, &a), 0);
	cr_assert_eq(fstat(got, &b), 0);
	cr_assert(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	cr_assert(fcntl(got, F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(fdlane_recv(e.dialer, &id, &got), -EAGAIN);
	close_ends(e);
}

Test(fdlane, no_more_than_the_ceiling_are_in_flight)
{
	struct ends e = open_ends();
	uint64_t id;
	int got;

	for (uint64_t i = 0; i < FDLANE_IN_FLIGHT; i++)
		cr_assert_eq(fdlane_send(e.listener, i, 0), 0, "the socket has room for %llu",
			     (unsigned long long)i);
	cr_assert_eq(fdlane_send(e.listener, 99, 0), -EAGAIN);
	cr_assert_eq(fdlane_recv(e.dialer, &id, &got), 0);
	cr_assert_eq(id, 0);
	close(got);
	cr_assert_eq(fdlane_send(e.listener, 99, 0), -EAGAIN);
	struct pollfd p = { .fd = fdlane_fd(e.listener), .events = POLLIN };

	cr_assert_eq(poll(&p, 1, 1000), 1);
	cr_assert_eq(fdlane_poll(e.listener), 0);
	cr_assert_eq(poll(&p, 1, 0), 0);
	cr_assert_eq(fdlane_send(e.listener, 99, 0), 0);
	close_ends(e);
}

Test(fdlane, a_receiver_without_free_descriptors_reports_and_acknowledges)
{
	struct ends e = open_ends();
	struct rlimit old, none = { 0 };
	uint64_t id = 0;
	int got = 0;

	cr_assert_eq(fdlane_send(e.listener, 7, 0), 0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none.rlim_max = old.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	const int r = fdlane_recv(e.dialer, &id, &got);

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	cr_assert_eq(r, -EBADMSG);
	cr_assert_eq(id, 7);
	cr_assert_eq(got, -1);
	cr_assert_eq(fdlane_poll(e.listener), 0);
	for (uint64_t i = 0; i < FDLANE_IN_FLIGHT; i++)
		cr_assert_eq(fdlane_send(e.listener, i, 0), 0);
	close_ends(e);
}

Test(fdlane, a_departed_peer_is_replaced_and_its_debts_are_forgotten)
{
	struct ends e = open_ends();
	uint64_t id;
	int got;

	for (uint64_t i = 0; i < FDLANE_IN_FLIGHT; i++)
		cr_assert_eq(fdlane_send(e.listener, i, 0), 0);
	fdlane_free(e.dialer);
	cr_assert_eq(fdlane_dial(BUSROUTE_FILES, run_dir, getuid(), 1000, &e.dialer), 0);
	cr_assert_eq(fdlane_poll(e.listener), 0);
	cr_assert_eq(fdlane_send(e.listener, 5, 0), 0);
	cr_assert_eq(fdlane_recv(e.dialer, &id, &got), 0);
	cr_assert_eq(id, 5);
	close_ends(e);
}

Test(fdlane, closed_peer_is_not_connected_on_either_end)
{
	struct ends e = open_ends();
	uint64_t id;
	int got;

	fdlane_free(e.dialer);
	cr_assert_eq(fdlane_send(e.listener, 1, 0), -ENOTCONN);
	cr_assert_eq(fdlane_send(e.listener, 1, 0), -ENOTCONN);
	cr_assert_eq(fdlane_dial(BUSROUTE_FILES, run_dir, getuid(), 1000, &e.dialer), 0);
	fdlane_free(e.listener);
	cr_assert_eq(fdlane_recv(e.dialer, &id, &got), -ENOTCONN);
	fdlane_free(e.dialer);
	cr_assert_eq(fdlane_dial(BUSROUTE_FILES, run_dir, getuid(), 50, &e.dialer), -ETIMEDOUT);
}

Test(fdlane, peer_of_another_uid_is_turned_away)
{
	struct fdlane *l, *d;
	uint64_t id;
	int got;

	cr_assert_eq(fdlane_listen(BUSROUTE_FILES, run_dir, getuid() + 1, &l), 0);
	cr_assert_eq(fdlane_dial(BUSROUTE_FILES, run_dir, getuid() + 1, 100, &d), -EPERM);
	cr_assert_eq(fdlane_dial(BUSROUTE_FILES, run_dir, getuid(), 100, &d), 0);
	cr_assert_eq(fdlane_poll(l), 0);
	cr_assert_eq(fdlane_send(l, 1, 0), -ENOTCONN);
	cr_assert_eq(fdlane_recv(d, &id, &got), -ENOTCONN);
	fdlane_free(l);
	fdlane_free(d);
}

Test(fdlane, second_peer_is_turned_away_while_one_is_there)
{
	struct ends e = open_ends();
	struct fdlane *other;
	uint64_t id;
	int got;

	cr_assert_eq(fdlane_dial(BUSROUTE_FILES, run_dir, getuid(), 1000, &other), 0);
	cr_assert_eq(fdlane_poll(e.listener), 0);
	cr_assert_eq(fdlane_recv(other, &id, &got), -ENOTCONN);
	cr_assert_eq(fdlane_send(e.listener, 3, 0), 0);
	cr_assert_eq(fdlane_recv(e.dialer, &id, &got), 0);
	fdlane_free(other);
	close_ends(e);
}

Test(fdlane, acknowledging_an_unsent_descriptor_closes_the_pipe)
{
	struct fdlane *l;
	char path[108];
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const uint64_t ack = 1234;

	cr_assert_eq(fdlane_listen(BUSROUTE_FILES, run_dir, getuid(), &l), 0);
	cr_assert_eq(busroute_path(BUSROUTE_FILES, run_dir, "fds", path, sizeof(path)), 0);
	memcpy(a.sun_path, path, sizeof(path));
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0660);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(fdlane_poll(l), 0);
	cr_assert_eq(fdlane_send(l, 1, 0), 0);
	cr_assert_eq(write(fd, &ack, sizeof(ack)), sizeof(ack));
	cr_assert_eq(fdlane_poll(l), 0);
	cr_assert_eq(fdlane_send(l, 1, 0), -ENOTCONN);
	close(fd);
	fdlane_free(l);
	cr_assert_neq(access(path, F_OK), 0);
}

Test(fdlane, accepting_without_free_descriptors_is_an_error)
{
	struct ends e;
	struct rlimit few, old;
	int spare[64], n = 0;

	cr_assert_eq(fdlane_listen(BUSROUTE_FILES, run_dir, getuid(), &e.listener), 0);
	cr_assert_eq(fdlane_dial(BUSROUTE_FILES, run_dir, getuid(), 1000, &e.dialer), 0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = 32;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n < 64 && (spare[n] = dup(0)) >= 0)
		n++;
	cr_assert(n > 0 && errno == EMFILE);
	cr_assert_eq(fdlane_poll(e.listener), -EMFILE, "its descriptor stays readable");
	while (n)
		close(spare[--n]);
	cr_assert_eq(fdlane_poll(e.listener), 0);
	cr_assert_eq(fdlane_send(e.listener, 42, 0), 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	close_ends(e);
}
