/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends in one process if that suffices; a process of its own if one end must die. Criterion
 * uses nng itself, and nng does not work after a fork, so such a process runs this binary again,
 * with its role in the environment, and never reaches Criterion's main.
 */
#include "common/wire/bus/bus.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tests/unit/run_dir.h"

#define ROUNDS 60

TestSuite(bus, .init = make_run_dir, .fini = remove_run_dir, .timeout = 60);

/* The number of blocks of this size that find no memory. */
static size_t starved_size;
static int starved;

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
	if (n == starved_size && __atomic_fetch_sub(&starved, 1, __ATOMIC_SEQ_CST) > 0)
		return NULL;
	return __real_malloc(n);
}

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
	if (n == starved_size && __atomic_fetch_sub(&starved, 1, __ATOMIC_SEQ_CST) > 0)
		return NULL;
	return __real_realloc(p, n);
}

static void send_number(struct bus *b, uint64_t n)
{
	cr_assert_eq(
		bus_send_wait(b, (struct span){ .data = (uint8_t *)&n, .len = sizeof(n) }, 10000),
		0);
}

static uint64_t number_in(const struct buf *b)
{
	uint64_t n;

	cr_assert_eq(b->len, sizeof(n));
	memcpy(&n, b->data, sizeof(n));
	return n;
}

static pid_t spawn(const char *role, uint64_t base, uint64_t count, int fd)
{
	char numbers[100];

	snprintf(numbers, sizeof(numbers), "%s %llu %llu %d", role, (unsigned long long)base,
		 (unsigned long long)count, fd);
	const pid_t child = fork();

	if (child)
		return child;
	setenv("BUS_TEST_DIR", run_dir, 1);
	setenv("BUS_TEST_ROLE", numbers, 1);
	execl("/proc/self/exe", "bus-peer", (char *)NULL);
	_exit(100);
}

struct ends {
	struct bus *listener, *dialer;
	struct buf into;
};

static struct ends open_ends(enum busroute_id route)
{
	struct ends e = { 0 };

	cr_assert_eq(bus_listen(route, run_dir, getuid(), &e.listener), 0);
	cr_assert_eq(bus_dial(route, run_dir, getuid(), 5000, &e.dialer), 0);
	cr_assert(bus_connected(e.dialer));
	cr_assert_eq(await(e.listener, &e.into), BUS_PEER_CAME);
	cr_assert_eq(await(e.dialer, &e.into), BUS_PEER_CAME);
	return e;
}

static void close_ends(struct ends *e)
{
	bus_free(e->dialer);
	bus_free(e->listener);
	buf_done(&e->into);
}

Test(bus, messages_go_both_ways_in_order)
{
	struct ends e = open_ends(BUSROUTE_FILES);

	for (uint64_t i = 0; i < 1000; i++) {
		send_number(e.listener, i);
		send_number(e.dialer, i + 5000);
		cr_assert_eq(await(e.dialer, &e.into), 0);
		cr_assert_eq(number_in(&e.into), i);
		cr_assert_eq(await(e.listener, &e.into), 0);
		cr_assert_eq(number_in(&e.into), i + 5000);
	}
	cr_assert_eq(bus_recv(e.dialer, &e.into), BUS_EMPTY);
	close_ends(&e);
}

static int await_event(struct bus *b)
{
	for (int i = 0; i < 500; i++) {
		const int r = bus_event(b);

		if (r != BUS_EMPTY)
			return r;
		poll(&(struct pollfd){ .fd = bus_fd(b), .events = POLLIN }, 1, 20);
	}
	return BUS_EMPTY;
}

Test(bus, a_peer_that_sends_on_a_one_way_route_is_dropped)
{
	struct ends e = open_ends(BUSROUTE_FILES);
	struct bus *next;

	for (uint64_t i = 0; i < 10; i++)
		send_number(e.dialer, i);
	cr_assert_eq(await_event(e.listener), BUS_PEER_WENT);
	cr_assert_eq(bus_event(e.listener), BUS_EMPTY);
	cr_assert_eq(await_event(e.dialer), BUS_PEER_WENT);
	cr_assert_eq(bus_dial(BUSROUTE_FILES, run_dir, getuid(), 5000, &next), 0);
	cr_expect_eq(await_event(e.listener), BUS_PEER_CAME);
	bus_free(next);
	cr_expect_eq(await_event(e.listener), BUS_PEER_WENT);
	close_ends(&e);
}

Test(bus, a_message_that_finds_no_memory_comes_later)
{
	struct ends e = open_ends(BUSROUTE_ROWS);
	static uint8_t bytes[100000];

	/* With its length and its capacity in front of it, but no head, as the receiver has it. */
	starved_size = sizeof(bytes) + sizeof(void *) + sizeof(size_t);
	starved = 2;
	cr_assert_eq(bus_send_wait(e.dialer, (struct span){ .data = bytes, .len = sizeof(bytes) },
				   10000),
		     0);
	cr_assert_eq(await(e.listener, &e.into), 0);
	cr_assert(starved <= 0 && e.into.len == sizeof(bytes));
	send_number(e.dialer, 7);
	cr_assert_eq(await(e.listener, &e.into), 0);
	cr_assert_eq(number_in(&e.into), 7);
	close_ends(&e);
}

Test(bus, a_message_that_there_is_no_memory_to_hand_out_waits)
{
	struct ends e = open_ends(BUSROUTE_ROWS);
	struct pollfd p = { .fd = bus_fd(e.listener), .events = POLLIN };

	send_number(e.dialer, 7);
	cr_assert_eq(poll(&p, 1, 5000), 1);
	buf_done(&e.into);
	starved_size = 64; /* that starts a buffer */
	starved = 1;
	cr_assert_eq(bus_recv(e.listener, &e.into), -ENOMEM);
	cr_assert_eq(bus_recv(e.listener, &e.into), 0);
	cr_assert_eq(number_in(&e.into), 7);
	close_ends(&e);
}

Test(bus, descriptor_is_level_readable_while_messages_wait)
{
	struct ends e = open_ends(BUSROUTE_STREAM);
	struct pollfd p = { .fd = bus_fd(e.dialer), .events = POLLIN };

	cr_assert_eq(poll(&p, 1, 20), 0);
	for (uint64_t i = 0; i < 5; i++)
		send_number(e.listener, i);
	for (uint64_t i = 0; i < 5; i++) {
		cr_assert_eq(poll(&p, 1, 5000), 1);
		cr_assert_eq(poll(&p, 1, 5000), 1);
		cr_assert_eq(await(e.dialer, &e.into), 0);
		cr_assert_eq(number_in(&e.into), i);
	}
	cr_assert_eq(poll(&p, 1, 20), 0);
	close_ends(&e);
}

Test(bus, socket_has_mode_0660)
{
	struct ends e = open_ends(BUSROUTE_NAMED);
	char path[108];
	struct stat st;

	cr_assert_eq(busroute_path(BUSROUTE_NAMED, run_dir, "sock", path, sizeof(path)), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0660);
	close_ends(&e);
}

Test(bus, a_full_queue_is_an_error_and_never_waits)
{
	struct ends e = open_ends(BUSROUTE_STREAM);
	static uint8_t batch[65536];
	int sent = 0, r = 0;
	const uint64_t start = clock_mono_ns();

	for (; sent < 10000 && !r; sent++)
		r = bus_send(e.listener, (struct span){ .data = batch, .len = sizeof(batch) });
	cr_assert_eq(r, -EAGAIN);
	cr_assert_lt(clock_mono_ns() - start, 5000000000u);
	/* nng's threads go on until the receiver's queue is full as well. */
	for (r = 0; sent < 10000 && !r; sent++)
		r = bus_send_wait(e.listener, (struct span){ .data = batch, .len = sizeof(batch) },
				  200);
	cr_assert_eq(r, -ETIMEDOUT);
	cr_assert_lt(sent, 200);
	/* A socket counts as writable again when three quarters of its buffer are empty. */
	for (int i = 0; i < 10; i++) {
		cr_assert_eq(await(e.dialer, &e.into), 0);
		cr_assert_eq(e.into.len, sizeof(batch));
	}
	cr_assert_eq(bus_send_wait(e.listener, (struct span){ .data = batch, .len = sizeof(batch) },
				   5000),
		     0);
	close_ends(&e);
}

Test(bus, message_over_the_limit_is_refused_by_the_sender)
{
	struct ends e = open_ends(BUSROUTE_FILES);
	static uint8_t big[170000];

	cr_assert_eq(bus_send(e.dialer, (struct span){ .data = big, .len = sizeof(big) }),
		     -EMSGSIZE);
	cr_assert_eq(bus_send(e.dialer, (struct span){ .data = big, .len = 0 }), -EINVAL);
	close_ends(&e);
}

Test(bus, a_bus_without_a_peer_is_not_connected)
{
	struct bus *b;
	struct buf into = BUF_INIT(0);

	cr_assert_eq(bus_listen(BUSROUTE_ROWS, run_dir, getuid(), &b), 0);
	cr_assert_not(bus_connected(b));
	cr_assert_eq(bus_send(b, (struct span){ .data = (const uint8_t *)"x", .len = 1 }),
		     -ENOTCONN);
	cr_assert_eq(bus_recv(b, &into), BUS_EMPTY);
	bus_free(b);
	cr_assert_eq(bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 100, &b), -ETIMEDOUT);
}

Test(bus, a_path_that_is_too_long_is_an_error)
{
	char dir[300];
	struct bus *b = NULL;

	memset(dir, 'd', sizeof(dir) - 1);
	dir[0] = '/';
	dir[sizeof(dir) - 1] = 0;
	cr_assert_lt(bus_listen(BUSROUTE_ROWS, dir, getuid(), &b), 0);
	cr_assert_null(b);
}

Test(bus, dialer_waits_for_a_listener_that_comes_later)
{
	const pid_t child = spawn("late-listener", 0, 0, -1);
	struct bus *b;
	int status;

	cr_assert_eq(bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 10000, &b), 0);
	bus_free(b);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

Test(bus, all_that_was_received_comes_before_the_departure)
{
	struct bus *b;
	struct buf into = BUF_INIT(0);
	int hold[2];

	cr_assert_eq(pipe(hold), 0);
	const pid_t first = spawn("sender", 100, 5, hold[0]);

	cr_assert_eq(bus_listen(BUSROUTE_ROWS, run_dir, getuid(), &b), 0);
	usleep(300000);
	cr_assert_eq(write(hold[1], "k", 1), 1);
	cr_assert_eq(waitpid(first, NULL, 0), first);
	usleep(100000);
	/* The peer died long ago; none of its messages was taken yet. */
	cr_assert_eq(await(b, &into), BUS_PEER_CAME);
	for (uint64_t i = 0; i < 5; i++) {
		cr_assert_eq(await(b, &into), 0);
		cr_assert_eq(number_in(&into), 100 + i);
	}
	cr_assert_eq(await(b, &into), BUS_PEER_WENT);
	cr_assert_eq(bus_recv(b, &into), BUS_EMPTY);
	bus_free(b);
	buf_done(&into);
}

Test(bus, two_peers_after_each_other_are_not_mixed_up)
{
	struct bus *b;
	struct buf into = BUF_INIT(0);
	int hold[2][2];
	pid_t child[2];

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(pipe(hold[i]), 0);
		child[i] = spawn("sender", (uint64_t)i * 10, 3, hold[i][0]);
	}
	cr_assert_eq(bus_listen(BUSROUTE_ROWS, run_dir, getuid(), &b), 0);
	usleep(400000);
	/* One of the two was accepted and has sent; the other one waits for its greeting. Let both
	 * die in turn. */
	cr_assert_eq(write(hold[0][1], "k", 1), 1);
	cr_assert_eq(write(hold[1][1], "k", 1), 1);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(waitpid(child[i], NULL, 0), child[i]);
	usleep(200000);
	uint64_t base[2];

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(await(b, &into), BUS_PEER_CAME);
		cr_assert_eq(await(b, &into), 0);
		base[i] = number_in(&into);
		for (uint64_t k = 1; k < 3; k++) {
			cr_assert_eq(await(b, &into), 0);
			cr_assert_eq(number_in(&into), base[i] + k);
		}
		cr_assert_eq(await(b, &into), BUS_PEER_WENT);
	}
	cr_assert_eq(base[0] + base[1], 10);
	bus_free(b);
	buf_done(&into);
}

Test(bus, messages_for_a_dead_peer_do_not_reach_the_next)
{
	struct bus *b;
	struct buf into = BUF_INIT(0);
	int hold[2], go[2];
	static uint8_t batch[1 << 20];

	cr_assert_eq(pipe(hold), 0);
	cr_assert_eq(pipe(go), 0);
	const pid_t first = spawn("sender", 0, 0, hold[0]);
	const pid_t second = spawn("expects-77", 0, 0, go[0]);

	cr_assert_eq(bus_listen(BUSROUTE_ROWS, run_dir, getuid(), &b), 0);
	cr_assert_eq(await(b, &into), BUS_PEER_CAME);
	int sent = 0;

	/* Its queues fill, since it reads nothing. */
	while (sent < 1000 &&
	       bus_send(b, (struct span){ .data = batch, .len = sizeof(batch) }) == 0)
		sent++;
	cr_assert_lt(sent, 1000);
	cr_assert_eq(write(hold[1], "k", 1), 1);
	cr_assert_eq(waitpid(first, NULL, 0), first);
	cr_assert_eq(await(b, &into), BUS_PEER_WENT);
	cr_assert_eq(bus_send(b, (struct span){ .data = batch, .len = 1 }), -ENOTCONN);
	cr_assert_eq(write(go[1], "g", 1), 1);
	cr_assert_eq(await(b, &into), BUS_PEER_CAME);
	send_number(b, 77);
	int status;

	cr_assert_eq(waitpid(second, &status, 0), second);
	cr_assert_eq(status, 0);
	bus_free(b);
	buf_done(&into);
}

Test(bus, second_peer_is_turned_away_while_one_is_there)
{
	struct ends e = open_ends(BUSROUTE_ROWS);
	struct bus *other = NULL;

	cr_assert_eq(bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 300, &other), -ETIMEDOUT);
	cr_assert_null(other);
	cr_assert_eq(bus_recv(e.listener, &e.into), BUS_EMPTY);
	send_number(e.dialer, 3);
	cr_assert_eq(await(e.listener, &e.into), 0);
	cr_assert_eq(number_in(&e.into), 3);
	close_ends(&e);
}

Test(bus, dialer_takes_no_other_peer_when_its_own_is_lost)
{
	struct ends e = open_ends(BUSROUTE_ROWS);

	bus_free(e.listener);
	cr_assert_eq(await(e.dialer, &e.into), BUS_PEER_WENT);
	cr_assert_eq(bus_listen(BUSROUTE_ROWS, run_dir, getuid(), &e.listener), 0);
	usleep(300000);
	cr_assert_eq(bus_recv(e.dialer, &e.into), BUS_EMPTY);
	cr_assert_eq(bus_recv(e.listener, &e.into), BUS_EMPTY);
	cr_assert_not(bus_connected(e.dialer));
	close_ends(&e);
}

Test(bus, peer_of_another_uid_is_turned_away)
{
	struct bus *b, *d = NULL;
	struct buf into = BUF_INIT(0);

	cr_assert_eq(bus_listen(BUSROUTE_ROWS, run_dir, getuid() + 1, &b), 0);
	cr_assert_eq(bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 300, &d), -ETIMEDOUT);
	cr_assert_eq(bus_recv(b, &into), BUS_EMPTY);
	bus_free(b);
	/* The dialer also checks the listener's uid. */
	cr_assert_eq(bus_listen(BUSROUTE_ROWS, run_dir, getuid(), &b), 0);
	cr_assert_eq(bus_dial(BUSROUTE_ROWS, run_dir, getuid() + 1, 300, &d), -ETIMEDOUT);
	cr_assert_null(d);
	bus_free(b);
	buf_done(&into);
}

/* A peer with the right uid that breaks the protocol: nng's header, then a message of 2^40
 * bytes. */
Test(bus, message_over_the_limit_costs_its_sender_the_pipe)
{
	struct bus *b;
	struct buf into = BUF_INIT(0);
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	static const uint8_t greeting[8] = { 0, 'S', 'P', 0, 0, 16, 0, 0 };
	static const uint8_t head[9] = { 1, 0, 0, 1, 0, 0, 0, 0, 0 };
	uint8_t byte;

	cr_assert_eq(bus_listen(BUSROUTE_ROWS, run_dir, getuid(), &b), 0);
	cr_assert_eq(busroute_path(BUSROUTE_ROWS, run_dir, "sock", a.sun_path, sizeof(a.sun_path)),
		     0);
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(write(fd, greeting, sizeof(greeting)), sizeof(greeting));
	cr_assert_eq(await(b, &into), BUS_PEER_CAME);
	cr_assert_eq(write(fd, head, sizeof(head)), sizeof(head));
	cr_assert_eq(await(b, &into), BUS_PEER_WENT);
	while (read(fd, &byte, 1) == 1)
		;
	close(fd);
	bus_free(b);
	buf_done(&into);
}

/* --- the other processes --- */

/* Dials, sends `count` numbers from `base` on, waits for a byte and a little longer, and exits. */
static int sender(uint64_t base, uint64_t count, int fd)
{
	struct bus *b;
	char c;

	if (bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 20000, &b))
		return 1;
	for (uint64_t n = base; n < base + count; n++)
		if (bus_send_wait(b, (struct span){ .data = (const uint8_t *)&n, .len = sizeof(n) },
				  10000))
			return 2;
	if (read(fd, &c, 1) < 0)
		return 3;
	usleep(100000); /* messages that nng just accepted have left by then */
	kill(getpid(), SIGKILL);
	return 4;
}

static int late_listener(void)
{
	struct bus *b;
	struct buf into = BUF_INIT(0);

	usleep(200000);
	return bus_listen(BUSROUTE_ROWS, run_dir, getuid(), &b) ||
	       await(b, &into) != BUS_PEER_CAME || await(b, &into) != BUS_PEER_WENT;
}

static int expects_77(int fd)
{
	struct bus *b;
	struct buf into = BUF_INIT(0);
	char c;

	if (read(fd, &c, 1) != 1 || bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 10000, &b))
		return 1;
	if (await(b, &into) != BUS_PEER_CAME || await(b, &into) != 0)
		return 2;
	return into.len == sizeof(uint64_t) && number_in(&into) == 77 ? 0 : 3;
}

/* Asks, takes no answer, and dies meanwhile. */
static int deaf(uint64_t microseconds)
{
	static uint8_t question[3000];
	struct bus *b;
	const uint64_t end = clock_mono_ns() + 10000000000u;
	uint64_t until;

	if (bus_dial(BUSROUTE_FILES, run_dir, getuid(), 10000, &b))
		return 102;
	until = clock_mono_ns() + microseconds * 1000;
	while (clock_mono_ns() < until && clock_mono_ns() < end)
		(void)bus_send(b, (struct span){ .data = question, .len = sizeof(question) });
	raise(SIGKILL);
	return 0;
}

/* Takes one of these after the other. 0: each was taken; else the round. */
static int take_deaf_ones(void)
{
	static uint8_t reply[20000];
	struct buf into = { 0 };
	struct bus *b;
	int r = 0, status;

	if (bus_listen(BUSROUTE_FILES, run_dir, getuid(), &b))
		return 103;
	for (int round = 1; round <= ROUNDS; round++) {
		const pid_t child = spawn("deaf", 3000 + 997u * (unsigned)round % 20000, 0, -1);
		const uint64_t end = clock_mono_ns() + 20000000000u;
		bool came = false, reaped = false;

		while (!(came && reaped)) {
			struct pollfd p = { .fd = bus_fd(b), .events = POLLIN };

			poll(&p, 1, 20);
			r = bus_recv(b, &into);
			came |= r == BUS_PEER_CAME;
			if (!r)
				(void)bus_send(
					b, (struct span){ .data = reply, .len = sizeof(reply) });
			if (!reaped)
				reaped = waitpid(child, &status, WNOHANG) == child;
			if (clock_mono_ns() > end)
				return round;
		}
	}
	bus_free(b);
	buf_done(&into);
	return 0;
}

Test(bus, a_peer_is_accepted_after_others_died_amid_their_messages, .timeout = 200)
{
	const pid_t child = spawn("rounds", 0, 0, -1);
	int status;

	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "round %d: nobody came", WEXITSTATUS(status));
}

__attribute__((constructor)) static void play_role(void)
{
	const char *role = getenv("BUS_TEST_ROLE");
	unsigned long long base, count;
	char name[32];
	int fd;

	if (!role || sscanf(role, "%31s %llu %llu %d", name, &base, &count, &fd) != 4)
		return;
	snprintf(run_dir, sizeof(run_dir), "%s", getenv("BUS_TEST_DIR"));
	alarm(strcmp(name, "rounds") ? 40 : 180);
	if (!strcmp(name, "sender"))
		_exit(sender(base, count, fd));
	if (!strcmp(name, "rounds"))
		_exit(take_deaf_ones());
	if (!strcmp(name, "deaf"))
		_exit(deaf(base));
	if (!strcmp(name, "late-listener"))
		_exit(late_listener());
	if (!strcmp(name, "expects-77"))
		_exit(expects_77(fd));
	_exit(101);
}
