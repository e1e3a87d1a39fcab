/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prof-deltas that was taken over, towards a real prof-bpf:
 *   hostile-deltas DIR UID KIND N
 * UID is prof-bpf's. Answers N requests for rows as KIND says, and reconnects each time it is
 * dropped for that:
 * - wrong: rows of every valid shape, sorted, with rules that lead anywhere
 * - circle: rows for the whole file by which a frame is its own caller
 * - unsorted: descending offsets
 * - outside: offsets beyond the span
 * - unknown: rules that were not sent
 * - invalid: rules that do not exist
 * - torn: half a rule, half a row
 * - more: more rows than were promised
 * - fewer: fewer of them
 * - huge: promises of the largest numbers
 * - endless: chunks without an end; each answer lasts a second or until it is dropped
 * - stranger: rows for requests that were never made
 * - twice: a second answer
 * - backwards: the messages of an answer in another order
 * - noise: bytes that are no message
 *
 * At the end it prints how many requests it answered, and how often it was dropped.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "bpf/unwind.h"
#include "common/base/system/clock.h"
#include "common/wire/bus/bus.h"
#include "common/wire/bus/fdlane.h"
#include "common/wire/stream.h"
#include "tests/random.h"

#define SECOND 1000000000ull
#define PATIENCE_NS (20 * SECOND)
#define DIAL_NS (5 * SECOND)
#define ROWS 4096
#define RULES 64

struct peer {
	const char *dir;
	uid_t uid;
	struct bus *bus;
	struct fdlane *lane;
	struct stream_in in;
	struct stream_out out;
	struct buf message;
	bool gone;
	bool fresh; /* nothing was answered by this pipe yet */
	uint64_t random, answered, thrown;
};

static _Noreturn void die(const char *what, int r)
{
	fprintf(stderr, "hostile-deltas: %s: %s\n", what, strerror(r < 0 ? -r : EPROTO));
	_exit(1);
}

/* --- the pipe --- */

static int send_batch(void *ctx, struct span batch)
{
	struct peer *p = ctx;

	return bus_send_wait(p->bus, batch, 2000);
}

static void put(struct peer *p, struct msg m)
{
	if (!p->gone && (stream_put(&p->out, &m) || stream_flush(&p->out)))
		p->gone = true;
}

static void come(struct peer *p)
{
	const uint64_t end = clock_mono_ns() + DIAL_NS;
	int r;

	/* It may still be busy dropping us. */
	do {
		p->bus = NULL; /* stays like this if no answer is sent */
		r = bus_dial(BUSROUTE_ROWS, p->dir, p->uid, 2000, &p->bus);
		if (!r)
			r = fdlane_dial(BUSROUTE_ROWS, p->dir, p->uid, 2000, &p->lane);
		if (r)
			bus_free(p->bus);
	} while (r && clock_mono_ns() < end);
	if (r)
		die("dial", r);
	stream_in_init(&p->in);
	stream_out_init(&p->out, 1, send_batch, p);
	stream_out_epoch(&p->out, clock_mono_ns());
	p->gone = false;
	p->fresh = true;
	put(p, (struct msg){ .id = MSG_HELLO,
			     .hello = { .schema = MSG_SCHEMA, .build = msg_build() } });
}

static void go(struct peer *p)
{
	stream_in_done(&p->in);
	stream_out_done(&p->out);
	fdlane_free(p->lane);
	bus_free(p->bus);
}

/* --- answers --- */

static void begin(struct peer *p, uint64_t id, uint64_t span, uint64_t rows, uint64_t rules)
{
	put(p, (struct msg){ .id = MSG_ROWS_BEGIN,
			     .rows_begin = { .id = id,
					     .status = MSG_ROWS_OK,
					     .base = 0,
					     .span = span,
					     .rows = rows,
					     .rules = rules } });
}

static void put_rules(struct peer *p, uint64_t id, const struct unwind_rule *rules, size_t bytes)
{
	put(p, (struct msg){ .id = MSG_ROWS_RULES,
			     .rows_rules = { .id = id,
					     .rules = { .data = (const void *)rules,
							.len = (uint32_t)bytes } } });
}

static void put_rows(struct peer *p, uint64_t id, const struct unwind_row_wire *rows, size_t bytes)
{
	put(p, (struct msg){ .id = MSG_ROWS_CHUNK,
			     .rows_chunk = { .id = id,
					     .rows = { .data = (const void *)rows,
						       .len = (uint32_t)bytes } } });
}

static void end(struct peer *p, uint64_t id)
{
	put(p, (struct msg){ .id = MSG_ROWS_END, .rows_end = { .id = id } });
}

/* All shapes of a rule: fields that its kind does not use are 0. */
static struct unwind_rule wrong_rule(struct peer *p)
{
	struct unwind_rule r;

	for (unsigned tries = 0; tries < 1000; tries++) {
		for (size_t i = 0; i < sizeof(r); i++)
			((uint8_t *)&r)[i] = (uint8_t)random_next(&p->random);
		r.cfa %= UNWIND_CFA_SUM + 1;
		r.rbp %= UNWIND_RBP_DEREF_REG + 1;
		r.ra %= UNWIND_RA_CFA_OFF + 1;
		r.cfa_reg %= UNWIND_REG_MAX;
		r.ra_reg %= UNWIND_REG_MAX;
		r.rbp_reg %= UNWIND_REG_MAX;
		r.flags &= random_next(&p->random) & UNWIND_SIGNAL_FRAME;
		r.index = unwind_loads(&r) || r.cfa == UNWIND_CFA_REG
				  ? r.index % (UNWIND_INDEX_MAX + 1)
				  : 0;
		const bool nest = r.cfa == UNWIND_CFA_NEST;
		r.index_reg = r.index || nest ? r.index_reg % UNWIND_REG_MAX : 0;
		r.cfa_mid = unwind_loads(&r) == 2 || nest ? r.cfa_mid : 0;
		/* A distance that is near, or anywhere. */
		if (random_next(&p->random) & 1)
			r.cfa_off = (int)(random_next(&p->random) % 4096) * 8 - 8192;
		if (unwind_rule_valid(&r))
			return r;
	}
	die("no rule is valid: unwind_rule_valid asks for more than is made here", -EINVAL);
}

static void answer(struct peer *p, const char *kind, uint64_t id)
{
	static struct unwind_row_wire rows[ROWS];
	struct unwind_rule rules[RULES];
	const uint32_t span = 1u << 26;
	const uint64_t since = clock_mono_ns();

	/* The CFA is the frame's own stack pointer, and the caller leaves the return address
	 * there. */
	for (unsigned i = 0; i < RULES; i++)
		rules[i] = strcmp(kind, "circle")
				   ? wrong_rule(p)
				   : (struct unwind_rule){ .cfa = UNWIND_CFA_REG,
							   .cfa_reg = UNWIND_REG_RSP,
							   .ra = UNWIND_RA_CFA,
							   .cfa_off = (int)i % 2 * 8 };
	for (uint32_t i = 0; i < ROWS; i++)
		rows[i] = (struct unwind_row_wire){
			.offset = span / ROWS * i, .rule = (uint32_t)random_next(&p->random) % RULES
		};
	if (!strcmp(kind, "unsorted")) {
		for (uint32_t i = 0; i < ROWS; i++)
			rows[i].offset = span - 1 - i;
	} else if (!strcmp(kind, "outside")) {
		rows[ROWS - 1].offset = span + 4096;
	} else if (!strcmp(kind, "unknown")) {
		rows[ROWS / 2].rule = RULES;
	} else if (!strcmp(kind, "invalid")) {
		memset(&rules[RULES / 2], 0xff, sizeof(rules[0]));
	} else if (!strcmp(kind, "noise")) {
		uint8_t noise[512];

		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (uint8_t)random_next(&p->random);
		p->gone |= bus_send_wait(p->bus,
					 (struct span){ .data = noise, .len = sizeof(noise) },
					 2000) != 0;
		return;
	} else if (!strcmp(kind, "huge")) {
		const uint64_t most[] = { UINT64_MAX, UINT32_MAX, 1ull << 63, UNWIND_MAX_ROWS + 1 };

		begin(p, id, most[random_next(&p->random) % 4], most[random_next(&p->random) % 4],
		      most[random_next(&p->random) % 4]);
	} else if (!strcmp(kind, "stranger")) {
		id += 1000 + random_next(&p->random) % 1000;
	} else if (!strcmp(kind, "backwards")) {
		end(p, id);
		put_rows(p, id, rows, sizeof(rows));
	}
	begin(p, id, span, strcmp(kind, "fewer") ? ROWS : 2 * ROWS, RULES);
	put_rules(p, id, rules, strcmp(kind, "torn") ? sizeof(rules) : sizeof(rules) - 7);
	put_rows(p, id, rows, strcmp(kind, "torn") ? sizeof(rows) : sizeof(rows) - 3);
	while (!strcmp(kind, "endless") && !p->gone && clock_mono_ns() - since < SECOND)
		put_rows(p, id, rows, sizeof(rows));
	if (!strcmp(kind, "more"))
		put_rows(p, id, rows, sizeof(rows));
	if (strcmp(kind, "endless"))
		end(p, id);
	if (!strcmp(kind, "twice")) {
		begin(p, id, span, ROWS, RULES);
		end(p, id);
	}
}

/* --- requests --- */

static void take(struct peer *p, const char *kind)
{
	uint64_t id;
	struct msg m;
	int fd, r;

	while (!p->gone && (r = fdlane_recv(p->lane, &id, &fd)) == 0)
		close(fd);
	while (!p->gone && (r = bus_recv(p->bus, &p->message)) != BUS_EMPTY) {
		if (r == BUS_PEER_CAME)
			continue;
		if (r || stream_feed(&p->in, buf_span(&p->message))) {
			p->gone = true;
			break;
		}
		while ((r = stream_next(&p->in, &m)) == 0) {
			if (m.id != MSG_ROWS_REQUEST)
				continue;
			answer(p, kind, m.rows_request.id);
			p->answered++;
			p->fresh = false;
		}
	}
}

int main(int argc, char **argv)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p || argc != 5)
		return 2;
	p->dir = argv[1];
	p->uid = (uid_t)strtoul(argv[2], NULL, 10);
	if (getrandom(&p->random, sizeof(p->random), 0) != sizeof(p->random) || !p->random)
		return 1;

	const uint64_t wanted = strtoull(argv[4], NULL, 10), until = clock_mono_ns() + PATIENCE_NS;

	come(p);
	while (p->answered < wanted && clock_mono_ns() < until) {
		struct pollfd fds[] = { { bus_fd(p->bus), POLLIN, 0 },
					{ fdlane_fd(p->lane), POLLIN, 0 } };

		poll(fds, 2, 50);
		take(p, argv[3]);
		if (p->gone) {
			p->thrown++;
			go(p);
			come(p);
		}
	}
	/* It may drop us for the last answer. */
	for (int i = 0; i < 400 && !p->gone && !p->fresh; i++) {
		p->gone = bus_recv(p->bus, &p->message) == BUS_PEER_WENT;
		p->thrown += p->gone;
		usleep(5000);
	}
	printf("%s answered=%llu thrown=%llu\n", argv[3], (unsigned long long)p->answered,
	       (unsigned long long)p->thrown);
	fflush(stdout);
	_exit(0);
}
