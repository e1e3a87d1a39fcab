/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `drop-peers DIR`: listens on the rows route and drops a hundred peers, each in the middle of
 * large messages, one after the other. Prints how many came and were seen to go, and the
 * descriptors that are open at the end. (`drop-peers DIR peer` is such a peer.)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/bus/bus.h"

#define PEERS 100
#define PATIENCE_NS 60000000000ull

static uint8_t large[1 << 20];

static int be_peer(const char *dir)
{
	struct bus *b;

	if (bus_dial(BUSROUTE_ROWS, dir, getuid(), 60000, &b))
		return 1;
	while (bus_send_wait(b, (struct span){ .data = large, .len = sizeof(large) }, 1000) !=
	       -ENOTCONN)
		;
	return 0;
}

/* True: the peer came, was dropped, and went. */
static bool drop_one(struct bus *b, struct buf *m, unsigned after)
{
	const uint64_t since = clock_mono_ns();
	bool came = false, went = false;
	unsigned seen = 0;

	while (!went && clock_mono_ns() - since < PATIENCE_NS) {
		struct pollfd p = { .fd = bus_fd(b), .events = POLLIN };

		poll(&p, 1, 100);
		int r = bus_recv(b, m);
		came |= r == BUS_PEER_CAME;
		went |= r == BUS_PEER_WENT;
		if (r == 0 && ++seen == after)
			bus_drop_peer(b);
	}
	return came && went;
}

int main(int argc, char **argv)
{
	struct buf m = BUF_INIT(0);
	struct bus *b;
	int gone = 0, fds = 0;

	if (argc == 3)
		_exit(be_peer(argv[1]));
	if (argc != 2 || bus_listen(BUSROUTE_ROWS, argv[1], getuid(), &b))
		return 2;
	for (unsigned i = 0; i < PEERS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execl("/proc/self/exe", argv[0], argv[1], "peer", NULL);
			_exit(127);
		}
		gone += drop_one(b, &m, 1 + i % 3);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	for (int fd = 0; fd < 4096; fd++)
		fds += fcntl(fd, F_GETFD) >= 0;
	printf("%d %d\n", gone, fds);
	fflush(stdout);
	_exit(0);
}
