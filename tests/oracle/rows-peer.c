/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows-peer RUN-DIR [MODE:]FILE...
 *
 * Stands where prof-bpf does on the route of rows: listens below RUN-DIR, asks whoever dials for
 * the rows of each FILE, all at once, and prints the answers: `FILE status N`, then rows as
 * prof-deltas prints them, with file offsets for addresses. MODE: `fd` hands the descriptor over
 * first, `late` half a second after the request, `never` not at all, `build` says hello as another
 * build, `garbage` sends bytes that are no message.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/wire/bus/bus.h"
#include "common/base/system/clock.h"
#include "common/wire/bus/fdlane.h"
#include "common/base/command/log.h"
#include "common/wire/stream.h"
#include "common/rows/print.h"

#define MAX_FILES 40
#define GIVE_UP_NS 20000000000ull

struct answer {
	const char *name;
	bool begun, ended;
	uint64_t status, base, span, rows, rules;
	struct buf row, rule;
};

static struct answer answers[MAX_FILES];
static struct bus *bus;
static struct fdlane *lane;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rows-peer: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int send_batch(void *ctx, struct span batch)
{
	(void)ctx;
	return bus_send_wait(bus, batch, 1000);
}

static void gone(void)
{
	printf("gone\n");
	exit(1);
}

static void send_fd(uint64_t id, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;
	uint64_t start = clock_mono_ns();

	must(fd >= 0, path);
	do {
		struct pollfd p = { .fd = fdlane_fd(lane), .events = POLLIN };

		must(fdlane_poll(lane) == 0, "lane");
		r = fdlane_send(lane, id, fd);
		if (r == -EAGAIN || r == -ENOTCONN)
			poll(&p, 1, 10);
		if (clock_mono_ns() - start > 2000000000u)
			gone();
	} while (r == -EAGAIN || r == -ENOTCONN);
	must(r == 0, "sending a descriptor");
	close(fd);
}

static void take(const struct msg *m)
{
	struct answer *a;

	if (m->id == MSG_HELLO) {
		must(m->hello.build == msg_build(), "hello");
		return;
	}
	/* The id is the first field of all four. */
	must(m->rows_begin.id >= 1 && m->rows_begin.id <= MAX_FILES,
	     "an id that was not asked for");
	a = &answers[m->rows_begin.id - 1];
	must(a->name && !a->ended, "an answer nobody waits for");
	must(a->begun == (m->id != MSG_ROWS_BEGIN), "order of messages");
	switch (m->id) {
	case MSG_ROWS_BEGIN:
		a->begun = true;
		a->status = m->rows_begin.status;
		a->base = m->rows_begin.base;
		a->span = m->rows_begin.span;
		a->rows = m->rows_begin.rows;
		a->rules = m->rows_begin.rules;
		a->ended = a->status != MSG_ROWS_OK;
		break;
	case MSG_ROWS_RULES:
		must(buf_append(&a->rule, m->rows_rules.rules.data, m->rows_rules.rules.len) == 0,
		     "memory");
		break;
	case MSG_ROWS_CHUNK:
		must(buf_append(&a->row, m->rows_chunk.rows.data, m->rows_chunk.rows.len) == 0,
		     "memory");
		break;
	case MSG_ROWS_END:
		a->ended = true;
		must(a->row.len == a->rows * sizeof(struct unwind_row_wire) &&
			     a->rule.len == a->rules * sizeof(struct unwind_rule),
		     "figures of rows_begin");
		break;
	default:
		must(false, "another message");
	}
}

static void print(const struct answer *a)
{
	const struct unwind_row_wire *row = (const void *)a->row.data;
	const struct unwind_rule *rule = (const void *)a->rule.data;
	uint64_t last = 0;

	printf("%s status %" PRIu64 "\n", a->name, a->status);
	for (uint64_t i = 0; i < a->rows && a->status == MSG_ROWS_OK; i++) {
		char text[PRINT_RULE_SIZE];

		must(row[i].rule < a->rules && row[i].offset < a->span &&
			     (!i || row[i].offset > last),
		     "rows");
		last = row[i].offset;
		print_rule(&rule[row[i].rule], false, text);
		printf("0x%" PRIx64 " %s\n", a->base + row[i].offset, text);
	}
}

static void request(struct stream_out *out, uint64_t id, const char *name)
{
	struct msg m = { .id = MSG_ROWS_REQUEST,
			 .rows_request = { .id = id, .name = str_from(name) } };

	int r = stream_put(out, &m);

	if (!r)
		r = stream_flush(out);
	if (r == -ENOTCONN || r == -ETIMEDOUT)
		gone();
	must(r == 0, "asking");
}

int main(int argc, char **argv)
{
	struct msg hello = { .id = MSG_HELLO,
			     .hello = { .schema = MSG_SCHEMA,
					.build = msg_build(),
					.producer = STR_LIT("rows-peer") } };
	uint64_t start = clock_mono_ns();
	struct buf message = { 0 };
	struct stream_out out;
	struct stream_in in;
	int n = argc - 2, ended = 0, r;

	if (n < 1 || n > MAX_FILES) {
		fprintf(stderr,
			"usage: rows-peer RUN-DIR [fd:|late:|never:|build:|garbage:]FILE...\n");
		return 2;
	}
	log_init("rows-peer", LOG_INFO);
	must(bus_listen(BUSROUTE_ROWS, argv[1], getuid(), &bus) == 0 &&
		     fdlane_listen(BUSROUTE_ROWS, argv[1], getuid(), &lane) == 0,
	     "listening");
	stream_in_init(&in);
	stream_out_init(&out, 4096, send_batch, NULL);
	while (!bus_connected(bus)) {
		struct pollfd p = { .fd = bus_fd(bus), .events = POLLIN };

		poll(&p, 1, 100);
		r = bus_recv(bus, &message);
		must(r >= 0 && clock_mono_ns() - start < GIVE_UP_NS, "nobody dials");
	}
	if (strncmp(argv[2], "build:", 6) == 0)
		hello.hello.build++;
	if (strncmp(argv[2], "garbage:", 8) == 0)
		must(bus_send_wait(
			     bus,
			     (struct span){ .data = (const uint8_t *)"\xff\xff\xff", .len = 3 },
			     1000) == 0,
		     "sending");
	must(stream_put(&out, &hello) == 0 && stream_flush(&out) == 0, "hello");
	for (int i = 0; i < n; i++) {
		const char *colon = strchr(argv[i + 2], ':'),
			   *path = colon ? colon + 1 : argv[i + 2];
		bool first = strncmp(argv[i + 2], "fd:", 3) == 0,
		     never = strncmp(argv[i + 2], "never:", 6) == 0;

		answers[i].name = path;
		if (first)
			send_fd((uint64_t)i + 1, path);
		request(&out, (uint64_t)i + 1, path);
		if (strncmp(argv[i + 2], "late:", 5) == 0)
			usleep(500000);
		if (!first && !never)
			send_fd((uint64_t)i + 1, path);
	}
	while (ended < n) {
		struct pollfd p[] = { { .fd = bus_fd(bus), .events = POLLIN },
				      { .fd = fdlane_fd(lane), .events = POLLIN } };
		struct msg m;

		poll(p, 2, 100);
		fdlane_poll(lane);
		r = bus_recv(bus, &message);
		must(clock_mono_ns() - start < GIVE_UP_NS, "no answer");
		if (r == BUS_PEER_WENT)
			gone();
		if (r)
			continue;
		must(stream_feed(&in, buf_span(&message)) == 0, "feeding");
		while (stream_next(&in, &m) == 0)
			take(&m);
		must(stream_missing(&in) == 0, "messages lost");
		for (ended = 0; ended < n && answers[ended].ended; ended++)
			;
	}
	for (int i = 0; i < n; i++)
		print(&answers[i]);
	stream_in_done(&in);
	stream_out_done(&out);
	buf_done(&message);
	for (int i = 0; i < n; i++) {
		buf_done(&answers[i].row);
		buf_done(&answers[i].rule);
	}
	fdlane_free(lane);
	bus_free(bus);
	return 0;
}
