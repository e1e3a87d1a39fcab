/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands for prof-export: listens for prof-send and sends it requests.
 *   feed RUN_DIR UID [-c] [-b]
 *     -c: leave without the end message; -b: claim to be of another build
 *
 * Standard input has requests, each behind three numbers of 32 bits, little-endian: its length, the
 * size that is told, and its samples. Prints "taken N MS": how many left, and how long that took.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/bus/bus.h"
#include "common/wire/stream.h"

#define PATIENCE_MS 20000

static struct bus *bus;

static void check(int r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "feed: %s: %s\n", what, strerror(-r));
	exit(1);
}

static int send_batch(void *ctx, struct span batch)
{
	(void)ctx;
	return bus_send_wait(bus, batch, PATIENCE_MS);
}

/* 0; BUS_PEER_CAME or BUS_PEER_WENT; -ETIMEDOUT. */
static int await(int event)
{
	const uint64_t until = clock_mono_ns() + PATIENCE_MS * 1000000ull;
	struct buf ignored = BUF_INIT(0);
	int r = BUS_EMPTY;

	while (r != event && clock_mono_ns() < until) {
		struct pollfd p = { .fd = bus_fd(bus), .events = POLLIN };

		r = bus_recv(bus, &ignored);
		if (r == BUS_EMPTY)
			poll(&p, 1, 20);
	}
	buf_done(&ignored);
	return r == event ? 0 : -ETIMEDOUT;
}

static bool read_whole(void *to, size_t n)
{
	return fread(to, 1, n, stdin) == n;
}

int main(int argc, char **argv)
{
	struct msg m = { .id = MSG_HELLO, .hello = { .schema = MSG_SCHEMA, .build = msg_build() } };
	static uint8_t request[2u << 20];
	struct stream_out out;
	bool cut = false;
	uint64_t n = 0;
	uint32_t head[3];

	if (argc < 3)
		return 2;
	for (int i = 3; i < argc; i++) {
		cut |= strcmp(argv[i], "-c") == 0;
		m.hello.build += strcmp(argv[i], "-b") == 0;
	}
	check(bus_listen(BUSROUTE_EXPORT, argv[1], (uid_t)strtoul(argv[2], NULL, 10), &bus),
	      "listen");
	check(await(BUS_PEER_CAME), "prof-send");
	stream_out_init(&out, MSG_MAX_SIZE, send_batch, NULL);
	check(stream_put(&out, &m), "hello");
	check(stream_flush(&out), "hello");
	const uint64_t since = clock_mono_ns();

	while (read_whole(head, sizeof(head)) && head[0] <= sizeof(request) &&
	       read_whole(request, head[0])) {
		m = (struct msg){ .id = MSG_EXPORT,
				  .export = { .id = ++n,
					      .samples = head[2],
					      .size = head[1],
					      .request = { .data = request, .len = head[0] } } };
		check(stream_put(&out, &m), "export");
		check(stream_flush(&out), "export");
	}
	printf("taken %llu %llu\n", (unsigned long long)n,
	       (unsigned long long)(clock_mono_ns() - since) / 1000000);
	fflush(stdout);
	if (!cut) {
		m = (struct msg)
		{
			.id = MSG_END
		};
		check(stream_put(&out, &m), "end");
		check(stream_flush(&out), "end");
		/* Like prof-export: the receiver closes after the end. */
		(void)await(BUS_PEER_WENT);
	} else {
		/* The bus has sent its messages when its queue is empty. */
		usleep(300000);
	}
	stream_out_done(&out);
	bus_free(bus);
	return 0;
}
