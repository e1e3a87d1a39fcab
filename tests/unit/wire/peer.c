/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a peer in one process, over real sockets. An end that breaks the rules is a plain
 * bus. */
#include "common/wire/peer/peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/wire/bus/bus.h"
#include "tests/unit/peer_fixture.h"
#include "tests/unit/run_dir.h"

#define BATCHES_AT_ONCE 2

TestSuite(peer, .init = make_run_dir, .fini = remove_run_dir, .timeout = 60);

static struct peer_config config_of(enum busroute_id route, const char *producer)
{
	return (struct peer_config){ .route = route,
				     .run_dir = run_dir,
				     .uid = getuid(),
				     .producer = producer,
				     .batch_max = 64 };
}

static struct peer *listen_on(enum busroute_id route)
{
	struct peer_config c = config_of(route, "prof-bpf");
	struct peer *p;

	c.batches_at_once = BATCHES_AT_ONCE;
	cr_assert_eq(peer_listen(&c, &p), 0);
	return p;
}

static struct peer *dial(enum busroute_id route)
{
	const struct peer_config c = config_of(route, "a dialer");
	struct peer *p;

	cr_assert_eq(peer_dial(&c, 5000, &p), 0);
	return p;
}

static void greet(struct peer *listener)
{
	struct msg m;

	cr_assert_eq(hear(listener, &m), PEER_CAME);
	for (int i = 0; i < 1000 && !peer_has_page(listener); i++) {
		cr_assert_eq(peer_poll_lane(listener), 0);
		cr_assert_eq(peer_greet(listener), 0);
		poll(NULL, 0, 1);
	}
	cr_assert(peer_has_page(listener));
	cr_assert_eq(peer_flush(listener), 0);
}

static struct msg rows_end(uint64_t id)
{
	return (struct msg){ .id = MSG_ROWS_END, .rows_end = { .id = id } };
}

static void say(struct peer *p, const struct msg *m)
{
	cr_assert_eq(peer_put(p, m), 0);
	cr_assert_eq(peer_flush(p), 0);
}

Test(peer, messages_and_files_come_and_hellos_are_not_handed_out)
{
	struct peer *listener = listen_on(BUSROUTE_ROWS), *dialer = dial(BUSROUTE_ROWS);
	const struct msg request = { .id = MSG_ROWS_REQUEST, .rows_request = { .id = 7 } };
	const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stat own, received;
	struct msg m;
	uint64_t id;
	int fd;

	greet(listener);
	say(listener, &request);
	cr_assert_eq(peer_send_file(listener, 7, file), 0);
	cr_assert_eq(hear(dialer, &m), PEER_CAME);
	cr_assert_eq(hear(dialer, &m), 0);
	cr_assert_eq(m.id, MSG_ROWS_REQUEST);
	cr_assert_eq(m.rows_request.id, 7);
	/* The page arrived first, and was taken. */
	cr_assert_eq(peer_recv_file(dialer, &id, &fd), 0);
	cr_assert_eq(id, 7);
	cr_assert_eq(fstat(file, &own), 0);
	cr_assert_eq(fstat(fd, &received), 0);
	cr_assert_eq(own.st_ino, received.st_ino);
	cr_assert_eq(peer_recv_file(dialer, &id, &fd), -EAGAIN);

	const struct msg end = rows_end(7);

	say(dialer, &end);
	cr_assert_eq(hear(listener, &m), 0);
	cr_assert_eq(m.id, MSG_ROWS_END);
	peer_free(dialer);
	cr_assert_eq(hear(listener, &m), PEER_WENT);
	cr_assert(!peer_dropped(listener));
	peer_free(listener);
}

Test(peer, the_listener_reads_what_the_dialer_died_of_and_grants_it_memory)
{
	struct peer *listener = listen_on(BUSROUTE_FILES), *dialer = dial(BUSROUTE_FILES);
	struct msg m;
	uint64_t id;
	int fd;

	greet(listener);
	cr_assert_eq(peer_lastword(listener).kind, LASTWORD_NOTHING);
	cr_assert_eq(peer_recv_file(dialer, &id, &fd), -EAGAIN, "the page is not handed out");
	(void)lastword_begin(LASTWORD_FILE, 5);
	lastword_want(4096);
	peer_grant(listener, 8192);
	cr_assert_eq(lastword_granted(), 8192);
	cr_assert_eq(peer_wanted(listener), 4096);
	peer_free(dialer);
	cr_assert_eq(hear(listener, &m), PEER_WENT);
	cr_assert_eq(peer_lastword(listener).kind, LASTWORD_FILE);
	cr_assert_eq(peer_lastword(listener).id, 5);

	/* The next one has a page of its own. */
	dialer = dial(BUSROUTE_FILES);
	greet(listener);
	cr_assert_eq(peer_lastword(listener).kind, LASTWORD_NOTHING);
	peer_free(dialer);
	peer_free(listener);
}

Test(peer, a_message_of_the_other_direction_and_later_ones_are_refused)
{
	struct peer *listener = listen_on(BUSROUTE_ROWS), *dialer = dial(BUSROUTE_ROWS);
	const struct msg request = { .id = MSG_ROWS_REQUEST, .rows_request = { .id = 7 } };
	const struct msg end = rows_end(7);
	struct msg m;

	greet(listener);
	say(dialer, &end);
	say(dialer, &request);
	say(dialer, &end);
	cr_assert_eq(hear(listener, &m), 0);
	cr_assert_eq(hear(listener, &m), PEER_UNRULY);
	cr_assert_eq(hear(listener, &m), PEER_UNRULY);
	peer_drop(listener);
	peer_drop(listener);
	cr_assert(peer_dropped(listener));
	cr_assert_eq(peer_greet(listener), -ENOTCONN);
	cr_assert_eq(hear(listener, &m), PEER_WENT);
	peer_free(dialer);

	/* The next one is heard. */
	dialer = dial(BUSROUTE_ROWS);
	say(dialer, &end);
	greet(listener);
	cr_assert(!peer_dropped(listener));
	cr_assert_eq(hear(listener, &m), 0);
	peer_free(dialer);
	peer_free(listener);
}

Test(peer, another_build_is_told_apart)
{
	struct peer *listener = listen_on(BUSROUTE_ROWS);
	const struct msg head = { .id = MSG_BATCH_HEAD };
	const struct msg hello = { .id = MSG_HELLO, .hello = { .schema = MSG_SCHEMA } };
	struct buf b = BUF_INIT(0);
	struct bus *other;
	struct msg m;

	cr_assert_eq(bus_dial(BUSROUTE_ROWS, run_dir, getuid(), 5000, &other), 0);
	cr_assert_eq(msg_encode(&b, &head), 0);
	cr_assert_eq(msg_encode(&b, &hello), 0);
	cr_assert_eq(bus_send(other, buf_span(&b)), 0);
	cr_assert_eq(hear(listener, &m), PEER_CAME);
	cr_assert_eq(hear(listener, &m), PEER_SCHEMA);
	peer_drop(listener);
	cr_assert_eq(hear(listener, &m), PEER_WENT);
	bus_free(other);
	buf_done(&b);
	peer_free(listener);
}

Test(peer, a_flood_of_messages_is_read_in_turns)
{
	struct peer *listener = listen_on(BUSROUTE_ROWS), *dialer = dial(BUSROUTE_ROWS);
	unsigned turns = 0, messages = 0;
	struct msg m;

	greet(listener);
	for (unsigned i = 0; i < 6; i++) {
		const struct msg end = rows_end(i);

		say(dialer, &end);
	}
	for (int i = 0; i < 1000 && messages < 6; i++) {
		struct pollfd wait = { .fd = peer_bus_fd(listener), .events = POLLIN };
		unsigned batches = 0;

		poll(&wait, 1, 10);
		while (peer_recv(listener, &m) == 0) {
			cr_assert_eq(m.rows_end.id, messages++);
			batches++;
		}
		cr_assert_leq(batches, BATCHES_AT_ONCE);
		turns += batches > 0;
	}
	cr_assert_eq(messages, 6);
	cr_assert_geq(turns, 3);
	peer_free(dialer);
	peer_free(listener);
}

/* The listener never reads, and the dialer loses patience after this number of waits. */
static int patience(void *ctx, unsigned waits)
{
	unsigned *most = ctx;

	return waits < *most ? 0 : -ECANCELED;
}

Test(peer, a_dialer_that_loses_patience_stops_waiting_for_room)
{
	struct peer *listener = listen_on(BUSROUTE_ROWS), *dialer;
	struct peer_config c = config_of(BUSROUTE_ROWS, "a dialer");
	unsigned most = 3;
	int r = 0;

	c.send_wait_ms = 10;
	c.patience = patience;
	c.ctx = &most;
	cr_assert_eq(peer_dial(&c, 5000, &dialer), 0);
	for (unsigned i = 0; i < 100000 && !r; i++) {
		const struct msg end = rows_end(i);

		r = peer_put(dialer, &end);
		if (!r)
			r = peer_flush(dialer);
	}
	cr_assert_eq(r, -ECANCELED);
	cr_assert(peer_has_unsent(dialer));
	peer_free(dialer);
	peer_free(listener);
}

Test(peer, a_one_way_route_has_no_lane_and_hands_out_the_hello_of_its_stream)
{
	struct peer *dialer;
	const struct msg hello = { .id = MSG_HELLO,
				   .hello = { .schema = MSG_SCHEMA, .build = msg_build() } };
	const struct msg head = { .id = MSG_BATCH_HEAD, .batch = { .epoch = 1 } };
	const struct msg next = { .id = MSG_BATCH_HEAD, .batch = { .epoch = 2, .seq = 3 } };
	const struct msg end = {.id = MSG_END };
	struct buf b = BUF_INIT(0), into = BUF_INIT(0);
	struct bus *listener;
	struct msg m;

	cr_assert_eq(bus_listen(BUSROUTE_STREAM, run_dir, getuid(), &listener), 0);
	dialer = dial(BUSROUTE_STREAM);
	cr_assert_eq(await(listener, &into), BUS_PEER_CAME);
	cr_assert_eq(peer_lane_fd(dialer), -1);
	cr_assert(!peer_has_unsent(dialer), "no hello goes back");
	cr_assert_eq(msg_encode(&b, &head), 0);
	cr_assert_eq(msg_encode(&b, &hello), 0);
	cr_assert_eq(msg_encode(&b, &next), 0);
	cr_assert_eq(msg_encode(&b, &end), 0);
	cr_assert_eq(bus_send(listener, buf_span(&b)), 0);
	cr_assert_eq(hear(dialer, &m), PEER_CAME);
	cr_assert_eq(hear(dialer, &m), 0);
	cr_assert_eq(m.id, MSG_HELLO);
	cr_assert(!peer_epoch_began(dialer));
	cr_assert_eq(hear(dialer, &m), 0);
	cr_assert_eq(m.id, MSG_END);
	cr_assert(peer_epoch_began(dialer));
	peer_epoch_taken(dialer);
	cr_assert(!peer_epoch_began(dialer));
	cr_assert_eq(peer_missing(dialer), 3);
	bus_free(listener);
	cr_assert_eq(hear(dialer, &m), PEER_WENT);
	peer_free(dialer);
	buf_done(&b);
	buf_done(&into);
}
