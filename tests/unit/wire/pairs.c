/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/pairs.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

static int some_file(void)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

Test(pairs, either_half_may_come_first)
{
	struct pairs p = { 0 };
	struct pair x;
	const int first = some_file(), second = some_file();

	pairs_message(&p, 1, true, 0);
	pairs_file(&p, 2, second, 10);
	cr_assert(!pairs_take(&p, 20, &x));
	pairs_message(&p, 2, true, 20);
	cr_assert(pairs_take(&p, 20, &x));
	cr_assert_eq(x.id, 2);
	cr_assert_eq(x.fd, second);
	cr_assert(x.has_message);
	pairs_file(&p, 1, first, 30);
	cr_assert(pairs_take(&p, 30, &x));
	cr_assert_eq(x.id, 1);
	cr_assert_eq(x.fd, first);
	cr_assert(!pairs_take(&p, 30, &x));
	close(first);
	close(second);
}

Test(pairs, complete_ones_are_taken_in_the_order_in_which_they_began)
{
	struct pairs p = { 0 };
	struct pair x;

	for (uint64_t id = 1; id <= 3; id++)
		pairs_message(&p, id, true, id);
	for (uint64_t id = 3; id >= 1; id--)
		pairs_file(&p, id, -1, 10);
	for (uint64_t id = 1; id <= 3; id++) {
		cr_assert(pairs_take(&p, 10, &x));
		cr_assert_eq(x.id, id);
	}
}

Test(pairs, message_that_announces_no_file_is_complete)
{
	struct pairs p = { 0 };
	struct pair x;
	const int fd = some_file();

	pairs_file(&p, 1, fd, 0);
	pairs_message(&p, 1, false, 0);
	cr_assert(!is_open(fd));
	pairs_message(&p, 2, false, 0);
	for (uint64_t id = 1; id <= 2; id++) {
		cr_assert(pairs_take(&p, 0, &x));
		cr_assert_eq(x.id, id);
		cr_assert_eq(x.fd, -1);
		cr_assert(x.has_message);
	}
}

Test(pairs, file_that_the_lane_lost_is_not_waited_for)
{
	struct pairs p = { 0 };
	struct pair x;

	pairs_file(&p, 1, -1, 0);
	pairs_message(&p, 1, true, 0);
	cr_assert(pairs_take(&p, 0, &x));
	cr_assert_eq(x.fd, -1);
}

Test(pairs, half_alone_is_given_up_when_it_has_waited)
{
	struct pairs p = { 0 };
	struct pair x;
	const int fd = some_file();

	cr_assert_eq(pairs_wait_ms(&p, 5), -1);
	pairs_message(&p, 1, true, 0);
	pairs_file(&p, 2, fd, 10);
	cr_assert_eq(pairs_wait_ms(&p, PAIRS_WAIT_NS - 2000000), 3);
	cr_assert(!pairs_take(&p, PAIRS_WAIT_NS - 1, &x));
	cr_assert_eq(pairs_wait_ms(&p, PAIRS_WAIT_NS + 1), 0);
	cr_assert(pairs_take(&p, PAIRS_WAIT_NS, &x));
	cr_assert_eq(x.id, 1);
	cr_assert(x.has_message);
	cr_assert(!pairs_take(&p, PAIRS_WAIT_NS, &x));
	cr_assert(pairs_take(&p, PAIRS_WAIT_NS + 10, &x));
	cr_assert_eq(x.id, 2);
	cr_assert(!x.has_message);
	cr_assert_eq(x.fd, -1);
	cr_assert(!is_open(fd));
}

Test(pairs, second_half_of_the_same_kind_is_dropped)
{
	struct pairs p = { 0 };
	struct pair x;
	const int fd = some_file(), other = some_file();

	pairs_file(&p, 1, fd, 0);
	pairs_file(&p, 1, other, 0);
	cr_assert(!is_open(other));
	pairs_message(&p, 1, true, 0);
	pairs_message(&p, 1, false, 0);
	cr_assert(pairs_take(&p, 0, &x));
	cr_assert_eq(x.fd, fd);
	cr_assert(is_open(fd));
	close(fd);
}

Test(pairs, oldest_half_makes_room)
{
	struct pairs p = { 0 };
	struct pair x;

	for (uint64_t id = 1; id <= PAIRS_MAX; id++) {
		cr_assert(!pairs_full(&p));
		pairs_message(&p, id, true, 0);
	}
	cr_assert(pairs_full(&p));
	/* The second half of a pair needs no additional room. */
	pairs_file(&p, 9, -1, 0);
	cr_assert(pairs_take(&p, 0, &x));
	cr_assert_eq(x.id, 9);
	pairs_message(&p, 100, true, 0);
	cr_assert(pairs_take(&p, 0, &x));
	cr_assert_eq(x.id, 1);
	cr_assert(!pairs_take(&p, 0, &x));
}

Test(pairs, without_room_a_file_is_closed)
{
	struct pairs p = { 0 };
	const int fd = some_file();

	for (uint64_t id = 1; id <= PAIRS_MAX; id++)
		pairs_message(&p, id, true, 0);
	pairs_file(&p, 100, fd, 0);
	cr_assert(!is_open(fd));
}

Test(pairs, files_that_wait_are_closed_at_the_end)
{
	struct pairs p = { 0 };
	const int fd = some_file();

	pairs_file(&p, 1, fd, 0);
	pairs_done(&p);
	cr_assert(!is_open(fd));
}
