/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of a bus on its socket, and its treatment of messages from strangers. The other end
 * is a bare socket or nng's own pair. The pair is in a process of its own (see
 * tests/unit/wire/bus.c), which exits without closing it, since nng may wait forever there.
 */
#include "common/wire/bus/bus.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "tests/unit/run_dir.h"

#define FILES_MAX (160u << 10)
#define ROWS_DEPTH 8 /* queue length of the dialer's side */
#define SECOND 1000000000ull

TestSuite(buswire, .init = make_run_dir, .fini = remove_run_dir, .timeout = 60);

static const uint8_t greeting[8] = { 0, 'S', 'P', 0, 0, 16, 0, 0 };

static struct bus *listen_to(enum busroute_id route)
{
	struct bus *b;

	cr_assert_eq(bus_listen(route, run_dir, getuid(), &b), 0);
	return b;
}

static int connect_to(enum busroute_id route)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(busroute_path(route, run_dir, "sock", a.sun_path, sizeof(a.sun_path)), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void say(int fd, const void *bytes, size_t len)
{
	cr_assert_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void say_head(int fd, uint8_t type, uint64_t len)
{
	uint8_t head[9] = { type };

	for (int i = 0; i < 8; i++)
		head[1 + i] = (uint8_t)(len >> (56 - 8 * i));
	say(fd, head, sizeof(head));
}

/* Nanoseconds until the other end is closed; at most ten seconds. */
static uint64_t closed_after(int fd)
{
	const uint64_t since = clock_mono_ns();
	uint8_t bytes[4096];

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		const uint64_t past = clock_mono_ns() - since;

		if (past > 10 * SECOND ||
		    (poll(&p, 1, 100) == 1 && read(fd, bytes, sizeof(bytes)) <= 0))
			return past;
	}
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* nng closes by a thread of its own. */
static bool come_to(int descriptors)
{
	for (int i = 0; i < 1000 && open_descriptors() != descriptors; i++)
		usleep(10000);
	return open_descriptors() == descriptors;
}

Test(buswire, a_message_is_its_length_and_its_bytes_after_a_greeting)
{
	struct bus *b = listen_to(BUSROUTE_ROWS);
	struct buf into = BUF_INIT(0);
	const int fd = connect_to(BUSROUTE_ROWS);
	static const uint8_t wanted[] = { 0, 'S', 'P', 0, 0, 16, 0, 0,	 1,   0,
					  0, 0,	  0,   0, 0, 0,	 3, 'a', 'b', 'c' };
	uint8_t got[sizeof(wanted)];

	/* Byte by byte. */
	for (size_t i = 0; i < sizeof(wanted); i++) {
		say(fd, wanted + i, 1);
		usleep(1000);
	}
	cr_assert_eq(await(b, &into), BUS_PEER_CAME);
	cr_assert_eq(await(b, &into), 0);
	cr_assert_eq(into.len, 3);
	cr_assert_arr_eq(into.data, "abc", 3);
	cr_assert_eq(bus_send(b, (struct span){ .data = (const uint8_t *)"abc", .len = 3 }), 0);
	cr_assert_eq(recv(fd, got, sizeof(got), MSG_WAITALL), sizeof(got));
	cr_assert_arr_eq(got, wanted, sizeof(got));
	close(fd);
	cr_assert_eq(await(b, &into), BUS_PEER_WENT);
	bus_free(b);
	buf_done(&into);
}

Test(buswire, a_peer_with_a_short_greeting_is_dropped_in_time)
{
	struct bus *b = listen_to(BUSROUTE_ROWS), *d;
	struct buf into = BUF_INIT(0);

	for (size_t said = 0; said < sizeof(greeting); said += 7) {
		const int fd = connect_to(BUSROUTE_ROWS);

		say(fd, greeting, said);
		usleep(10000);
		const int second = connect_to(BUSROUTE_ROWS);

		cr_assert_lt(closed_after(second), 2 * SECOND);
		close(second);
		cr_assert_eq(bus_recv(b, &into), BUS_EMPTY);
		/* Its turn is over before nine seconds are. */
		cr_assert_eq(bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 9000, &d), 0);
		cr_assert_lt(closed_after(fd), SECOND);
		cr_assert_eq(await(b, &into), BUS_PEER_CAME);
		close(fd);
		bus_free(d);
		cr_assert_eq(await(b, &into), BUS_PEER_WENT);
	}
	bus_free(b);
	buf_done(&into);
}

Test(buswire, a_peer_with_a_wrong_greeting_is_not_reported)
{
	struct bus *b = listen_to(BUSROUTE_ROWS);
	struct buf into = BUF_INIT(0);

	for (size_t at = 0; at < sizeof(greeting); at++) {
		const int fd = connect_to(BUSROUTE_ROWS);
		uint8_t wrong[sizeof(greeting)];

		memcpy(wrong, greeting, sizeof(wrong));
		wrong[at] ^= 1;
		say(fd, wrong, sizeof(wrong));
		cr_assert_lt(closed_after(fd), 4 * SECOND);
		close(fd);
	}
	cr_assert_eq(bus_recv(b, &into), BUS_EMPTY);
	bus_free(b);
	buf_done(&into);
}

Test(buswire, a_second_peer_is_closed_at_once)
{
	struct bus *b = listen_to(BUSROUTE_ROWS), *d;
	struct buf into = BUF_INIT(0);

	cr_assert_eq(bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 5000, &d), 0);
	const int before = open_descriptors();

	for (int i = 0; i < 50; i++) {
		const int fd = connect_to(BUSROUTE_ROWS);

		cr_assert_lt(closed_after(fd), 4 * SECOND);
		close(fd);
	}
	cr_assert(come_to(before));
	cr_assert(bus_connected(d));
	cr_assert_eq(await(b, &into), BUS_PEER_CAME);
	cr_assert_eq(bus_recv(b, &into), BUS_EMPTY);
	bus_free(d);
	bus_free(b);
	buf_done(&into);
}

Test(buswire, a_message_of_no_allowed_size_or_kind_costs_its_sender_the_pipe)
{
	static const struct {
		uint8_t type;
		uint64_t len;
	} heads[] = { { 1, 0 }, { 1, FILES_MAX + 1 }, { 1, UINT64_MAX }, { 0, 5 }, { 2, 5 } };
	struct bus *b = listen_to(BUSROUTE_FILES);
	struct buf into = BUF_INIT(0);

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		const int fd = connect_to(BUSROUTE_FILES);

		say(fd, greeting, sizeof(greeting));
		say_head(fd, heads[i].type, heads[i].len);
		cr_assert_eq(await(b, &into), BUS_PEER_CAME);
		cr_assert_eq(await(b, &into), BUS_PEER_WENT, "%zu", i);
		cr_assert_lt(closed_after(fd), 4 * SECOND);
		close(fd);
	}
	bus_free(b);
	buf_done(&into);
}

/* The kernel's buffer, ours, and as many messages as may wait. */
Test(buswire, no_more_is_read_than_may_wait)
{
	static uint8_t ballast[100000];
	struct bus *b = listen_to(BUSROUTE_ROWS);
	struct buf into = BUF_INIT(0);
	const int fd = connect_to(BUSROUTE_ROWS);
	size_t sent = 0, taken = 0;

	say(fd, greeting, sizeof(greeting));
	cr_assert_eq(await(b, &into), BUS_PEER_CAME);
	for (int quiet = 0; quiet < 20;) {
		const size_t at = sent % (sizeof(ballast) + 9);
		const uint8_t head[9] = { 1, 0, 0, 0, 0, 0, 1, 0x86, 0xa0 };
		const ssize_t n = at < 9 ? send(fd, head + at, 9 - at, MSG_DONTWAIT)
					 : send(fd, ballast, sizeof(ballast) + 9 - at,
						MSG_DONTWAIT);

		quiet = n > 0 ? 0 : quiet + 1;
		sent += n > 0 ? (size_t)n : 0;
		if (n <= 0)
			usleep(10000);
	}
	cr_assert_lt(sent, (ROWS_DEPTH + 8) * sizeof(ballast));
	while (taken < sent / (sizeof(ballast) + 9)) {
		cr_assert_eq(await(b, &into), 0);
		cr_assert_eq(into.len, sizeof(ballast));
		taken++;
	}
	cr_assert_eq(bus_recv(b, &into), BUS_EMPTY);
	close(fd);
	cr_assert_eq(await(b, &into), BUS_PEER_WENT);
	bus_free(b);
	buf_done(&into);
}

Test(buswire, a_dropped_peer_is_closed_and_its_leftovers_ignored)
{
	struct bus *b = listen_to(BUSROUTE_ROWS);
	struct buf into = BUF_INIT(0);

	for (int i = 0; i < 20; i++) {
		const int fd = connect_to(BUSROUTE_ROWS);

		say(fd, greeting, sizeof(greeting));
		for (int n = 0; n < 4; n++) {
			say_head(fd, 1, 3);
			say(fd, "abc", 3);
		}
		say_head(fd, 1, 1000); /* and no bytes */
		cr_assert_eq(await(b, &into), BUS_PEER_CAME);
		cr_assert_eq(await(b, &into), 0);
		bus_drop_peer(b);
		cr_assert_not(bus_connected(b));
		cr_assert_eq(await(b, &into), BUS_PEER_WENT);
		cr_assert_lt(closed_after(fd), 4 * SECOND);
		close(fd);
	}
	cr_assert_eq(bus_recv(b, &into), BUS_EMPTY);
	bus_free(b);
	buf_done(&into);
}

/* The peer sends all it has and is gone before anything is read; an answer is unread. */
Test(buswire, messages_of_a_dead_peer_arrive_although_an_answer_was_lost)
{
	struct bus *b = listen_to(BUSROUTE_FILES);
	struct buf into = BUF_INIT(0);

	for (int i = 0; i < 50; i++) {
		const int fd = connect_to(BUSROUTE_FILES);

		say(fd, greeting, sizeof(greeting));
		cr_assert_eq(await(b, &into), BUS_PEER_CAME);
		cr_assert_eq(bus_send(b, (struct span){ .data = greeting, .len = 8 }), 0);
		for (int n = 0; n < 20; n++) {
			say_head(fd, 1, 1000);
			say(fd, run_dir, 1);
			say(fd, (uint8_t[999]){ 0 }, 999);
		}
		close(fd);
		(void)bus_send(b, (struct span){ .data = greeting, .len = 8 });
		for (int n = 0; n < 20; n++)
			cr_assert_eq(await(b, &into), 0, "%d of %d", n, i);
		cr_assert_eq(await(b, &into), BUS_PEER_WENT);
	}
	bus_free(b);
	buf_done(&into);
}

Test(buswire, free_closes_every_descriptor)
{
	struct bus *b = listen_to(BUSROUTE_ROWS); /* nng begins */
	struct buf into = BUF_INIT(0);

	const int with_nng = open_descriptors();

	bus_free(b);
	cr_assert(come_to(with_nng - 2)); /* its socket, and its event */
	const int before = open_descriptors();

	for (int i = 0; i < 50; i++) {
		struct bus *d = NULL;

		b = listen_to(BUSROUTE_ROWS);
		if (i % 3) {
			cr_assert_eq(bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 5000, &d), 0);
			(void)bus_send(d, (struct span){ .data = greeting, .len = 8 });
		}
		if (d && i % 2)
			(void)await(b, &into);
		bus_free(i % 5 ? d : b);
		bus_free(i % 5 ? b : d);
	}
	cr_assert(come_to(before));
	buf_done(&into);
}

/* --- nng's own pair --- */

static pid_t spawn(const char *role)
{
	const pid_t child = fork();

	if (child)
		return child;
	setenv("BUSWIRE_DIR", run_dir, 1);
	setenv("BUSWIRE_ROLE", role, 1);
	execl("/proc/self/exe", "pair", (char *)NULL);
	_exit(100);
}

static void exchange(struct bus *b)
{
	static const size_t sizes[] = { 1, 8, 4096, 70000, FILES_MAX };
	static uint8_t bytes[FILES_MAX];
	struct buf into = BUF_INIT(0);

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31);
	cr_assert_eq(await(b, &into), BUS_PEER_CAME);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cr_assert_eq(bus_send(b, (struct span){ .data = bytes, .len = sizes[i] }), 0);
		cr_assert_eq(await(b, &into), 0);
		cr_assert_eq(into.len, sizes[i]);
		cr_assert_arr_eq(into.data, bytes, sizes[i]);
	}
	cr_assert_eq(bus_send(b, (struct span){ .data = (const uint8_t *)"end", .len = 3 }), 0);
	cr_assert_eq(await(b, &into), BUS_PEER_WENT);
	buf_done(&into);
}

Test(buswire, a_pair_of_nngs_can_dial)
{
	struct bus *b = listen_to(BUSROUTE_FILES);
	const pid_t child = spawn("dial");
	int status;

	exchange(b);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	bus_free(b);
}

Test(buswire, a_pair_of_nngs_can_be_dialed)
{
	const pid_t child = spawn("listen");
	struct bus *b;
	int status;

	cr_assert_eq(bus_dial(BUSROUTE_FILES, run_dir, getuid(), 10000, &b), 0);
	exchange(b);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	bus_free(b);
}

/* Echoes messages until it gets "end". */
static int be_pair(const char *role)
{
	nng_socket s;
	nng_msg *m;
	char url[128];

	snprintf(url, sizeof(url), "ipc://%s/bpf/files.sock", getenv("BUSWIRE_DIR"));
	if (nng_pair0_open(&s) ||
	    (strcmp(role, "dial") ? nng_listen(s, url, NULL, 0) : nng_dial(s, url, NULL, 0)))
		return 1;
	for (;;) {
		if (nng_recvmsg(s, &m, 0))
			return 2;
		if (nng_msg_len(m) == 3 && !memcmp(nng_msg_body(m), "end", 3))
			return 0;
		if (nng_sendmsg(s, m, 0))
			return 3;
	}
}

__attribute__((constructor)) static void play_role(void)
{
	const char *role = getenv("BUSWIRE_ROLE");

	if (!role)
		return;
	alarm(40);
	_exit(be_pair(role));
}
