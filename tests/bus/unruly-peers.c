/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `unruly-peers DIR PEERS`: listens on the files route and takes that many peers, some of them at
 * the same time. Their kinds:
 * - correct: asks, and reads the answers
 * - dies in the middle of a request
 * - sends a part of a greeting, a head or a message
 * - sends wrong bytes
 * - sends nothing
 * - reads nothing
 *
 * Some are dropped at a random message. Each correct one must be accepted. Messages must arrive in
 * order, between the arrival and the departure of their peer, and answers must reach the peer that
 * asked. Prints how many peers arrived, were dropped, and were correct and got all answers, and how
 * many descriptors were left open. (`unruly-peers DIR KIND SEED` is such a peer.)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/bus/bus.h"
#include "tests/random.h"

#define AT_ONCE 3
#define LARGEST 150000
#define PATIENCE_MS 20000
#define THROWN 3 /* exit status of a correct peer that was dropped */

enum kind { HONEST, DEADLY, CUT, WRONG, SILENT, DEAF, KINDS };

struct letter {
	uint64_t from, number;
	uint8_t ballast[LARGEST];
};

static struct letter letter;
static uint64_t random_state;

static uint64_t next_random(void)
{
	return random_next(&random_state);
}

static struct span write_letter(uint64_t from, uint64_t number)
{
	letter.from = from;
	letter.number = number;
	return (struct span){ .data = (const uint8_t *)&letter,
			      .len = 16 + next_random() % (next_random() % 2 ? 100 : LARGEST) };
}

/* --- a peer --- */

/* Asks, and takes the answers. */
static int be_honest(struct bus *b)
{
	const uint64_t letters = 1 + next_random() % 20;
	const uint64_t end = clock_mono_ns() + PATIENCE_MS * 1000000ull;
	struct buf m = BUF_INIT(0);
	uint64_t asked = 0, answered = 0;

	while (answered < letters && clock_mono_ns() < end) {
		struct pollfd p = { .fd = bus_fd(b), .events = POLLIN };
		int r = asked < letters ? bus_send(b, write_letter((uint64_t)getpid(), asked)) : 0;

		asked += asked < letters && !r;
		poll(&p, 1, asked < letters && !r ? 0 : 50);
		r = bus_recv(b, &m);
		if (r == BUS_PEER_WENT)
			return THROWN;
		if (r)
			continue;
		memcpy(&letter, m.data, 16);
		if (m.len < 16 || letter.from != (uint64_t)getpid() || letter.number != answered++)
			return 4;
	}
	return answered == letters ? 0 : 5;
}

static int die_amid(struct bus *b)
{
	const uint64_t end = clock_mono_ns() + next_random() % 4000000;

	for (uint64_t n = 0; clock_mono_ns() < end;)
		n += !bus_send(b, write_letter((uint64_t)getpid(), n));
	raise(SIGKILL);
	return 6;
}

/* Sends correct bytes, or bytes that are truncated or wrong at some place. */
static int speak(const char *dir, enum kind kind)
{
	static uint8_t said[100000] = { 0, 'S', 'P', 0, 0, 16, 0, 0, 1 };
	static const int places[] = { 1, 5, 8, 14, 15 };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const uint64_t length = 50000;
	size_t len = sizeof(said);

	for (int i = 0; i < 8; i++)
		said[9 + i] = (uint8_t)(length >> (56 - 8 * i));
	letter.from = (uint64_t)getpid();
	memcpy(said + 17, &letter, 16);
	if (kind == WRONG)
		said[places[next_random() % 5]] ^= 0x80 >> next_random() % 4;
	if (kind == CUT)
		len = next_random() % (next_random() % 2 ? 40 : 60000);
	if (kind == DEAF)
		len = 17 + length;
	if (busroute_path(BUSROUTE_FILES, dir, "sock", a.sun_path, sizeof(a.sun_path)) ||
	    connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return 7;
	if (kind == SILENT)
		len = 0;
	for (size_t n = 0; n < len;) {
		const ssize_t r = send(fd, said + n, len - n, MSG_NOSIGNAL);

		if (r < 0)
			break;
		n += (size_t)r;
	}
	if (kind == DEAF)
		shutdown(fd, next_random() % 2 ? SHUT_RD : SHUT_RDWR);
	usleep((unsigned)(next_random() % 5000));
	return 0;
}

static int be_peer(const char *dir, enum kind kind)
{
	struct bus *b;

	if (kind != HONEST && kind != DEADLY)
		return speak(dir, kind);
	if (bus_dial(BUSROUTE_FILES, dir, getuid(), PATIENCE_MS, &b))
		return 8;
	if (kind == DEADLY)
		return die_amid(b);
	const int r = be_honest(b);

	bus_free(b);
	return r;
}

/* --- the listener --- */

static struct peers {
	pid_t pid[AT_ONCE];
	enum kind kind[AT_ONCE];
	unsigned started, ended, content;
	bool wrong;
} peers;

static void start_one(char **argv, int at)
{
	const enum kind kind = next_random() % 3 ? next_random() % KINDS : HONEST;
	char numbers[2][24];

	snprintf(numbers[0], sizeof(numbers[0]), "%d", kind);
	snprintf(numbers[1], sizeof(numbers[1]), "%llu", (unsigned long long)next_random());
	peers.kind[at] = kind;
	peers.pid[at] = fork();
	peers.started++;
	if (peers.pid[at])
		return;
	execl("/proc/self/exe", argv[0], argv[1], numbers[0], numbers[1], NULL);
	_exit(127);
}

static void await_one(int at)
{
	int status;

	if (!peers.pid[at] || waitpid(peers.pid[at], &status, WNOHANG) != peers.pid[at])
		return;
	peers.pid[at] = 0;
	peers.ended++;
	const bool content = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	const bool thrown = WIFEXITED(status) && WEXITSTATUS(status) == THROWN;

	peers.content += content && peers.kind[at] == HONEST;
	if (content || (thrown && peers.kind[at] == HONEST) ||
	    (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && peers.kind[at] == DEADLY))
		return;
	fprintf(stderr, "a peer of kind %d ended with %#x\n", peers.kind[at], status);
	peers.wrong = true;
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int main(int argc, char **argv)
{
	struct buf m = BUF_INIT(0);
	struct bus *b;
	unsigned came = 0, thrown = 0;
	uint64_t from = 0, number = 0, turned_ns = clock_mono_ns();
	bool there = false, out = false;

	random_state = argc == 4 ? strtoull(argv[3], NULL, 10) | 1 : 88172645463325252u;
	if (argc == 4)
		_exit(be_peer(argv[1], atoi(argv[2])));
	if (argc != 3 || bus_listen(BUSROUTE_FILES, argv[1], getuid(), &b))
		return 2;
	const unsigned wanted = (unsigned)atoi(argv[2]);
	const int before = open_descriptors();

	while (!peers.wrong && peers.ended < wanted) {
		struct pollfd p = { .fd = bus_fd(b), .events = POLLIN };

		for (int at = 0; at < AT_ONCE; at++) {
			await_one(at);
			if (!peers.pid[at] && peers.started < wanted)
				start_one(argv, at);
		}
		const int ready = poll(&p, 1, 1);
		const int r = bus_recv(b, &m);

		if (r != BUS_EMPTY)
			turned_ns = clock_mono_ns();
		else if (ready)
			peers.wrong = true;
		if (clock_mono_ns() - turned_ns > 2 * PATIENCE_MS * 1000000ull)
			peers.wrong = true;
		if (r == BUS_PEER_CAME) {
			peers.wrong |= there;
			there = true;
			out = false;
			from = number = 0;
			came++;
		} else if (r == BUS_PEER_WENT) {
			peers.wrong |= !there;
			there = false;
		} else if (r == 0) {
			memcpy(&letter, m.data, 16);
			peers.wrong |= !there || out || m.len < 16 || letter.number != number++ ||
				       (from && letter.from != from);
			from = letter.from;
			(void)bus_send(b, write_letter(letter.from, letter.number));
			if (next_random() % 64 == 0) {
				out = true;
				thrown++;
				bus_drop_peer(b);
			}
		}
	}
	/* The last peer has gone. */
	for (int i = 0; there && i < PATIENCE_MS / 10; i++) {
		struct pollfd p = { .fd = bus_fd(b), .events = POLLIN };

		poll(&p, 1, 10);
		there = bus_recv(b, &m) != BUS_PEER_WENT;
	}
	peers.wrong |= there;
	/* nng closes by a thread of its own. */
	for (int i = 0; open_descriptors() != before && i < PATIENCE_MS / 10; i++)
		usleep(10000);
	const int after = open_descriptors();

	bus_free(b);
	buf_done(&m);
	printf("%s came=%u thrown=%u content=%u left=%d\n", peers.wrong ? "wrong" : "right", came,
	       thrown, peers.content, after - before);
	return peers.wrong;
}
