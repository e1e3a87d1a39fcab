/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/row_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "common/base/tables/blockers.h"
#include "common/walk/tables/tables.h"
#include "common/wire/peer/peer.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/peers/rowqueue.h"

#define REST_LEAST_NS 50000000ull /* who spent this much may have to pause for the whole time */
#define REST_LIMITS 2 /* what owners spend counts for some 30 s, and the limit is for ten */
#define IN_FLIGHT 3   /* one that it works on, and some that it can begin next */
/* Guessed cpu time of the requests that are under way: beyond that, none is sent in advance. */
#define AHEAD_NS 20000000u
#define BATCHES_AT_ONCE 8
/* If the extractor neither answers nor works for this long, it is restarted. This proves nothing
 * about a file: the host may give it no cpu. */
#define DEADLINE_NS 60000000000ull
#define DEADLINE_DOUBLED_MAX 3 /* how often the wait is doubled, without an answer */
#define PAUSE_DOUBLED_MAX 4    /* and how often the pause of a file is */
#define WARY_NS (2 * DEADLINE_NS)
#define SLOW_NS (LASTWORD_SLOW_S * 1000000000ull)

struct row_server {
	struct row_server_config config;
	struct peer *peer;
	struct owners *owners;
	uint64_t next_id;
	struct rowqueue waiting;
	struct rowqueue_request *outstanding;
	unsigned in_flight;
	uint64_t rest_ms, most_ns;	    /* most_ns: what the owner has spent who spent most */
	uint64_t stopped, stopped_after_ns; /* the last request that the extractor was told to put
					     * aside */
	uint64_t moved_ns; /* when the extractor finished a request, got the first one, or was last
			    * seen to work */
	struct lastword seen; /* its last word at that time, after a deadline */
	unsigned timeouts;    /* since the last answer */
	struct blockers blockers;
	/* Requests whose turn has come without a descriptor. */
	struct unopened {
		uint16_t slot;
		uint32_t serial;
	} unopened[IN_FLIGHT];
	unsigned unopened_count;
	struct row_server_figures figures;
};

static void forget(struct row_server *r, struct rowqueue_request *q)
{
	if (q->owner)
		owner_release(r->owners, q->owner, OWNER_QUEUE, 1);
	rowqueue_request_free(q);
}

int row_server_new(const struct row_server_config *c, struct row_server **ret)
{
	struct row_server *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->config = *c;
	r->waiting.tables = c->tables;
	const struct peer_config peer = { .route = BUSROUTE_ROWS,
					  .run_dir = c->run_dir,
					  .uid = c->peer,
					  .producer = "prof-bpf",
					  .batch_max = 64 << 10,
					  .batches_at_once = BATCHES_AT_ONCE };
	const int e = peer_listen(&peer, &r->peer);

	if (e) {
		row_server_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

void row_server_free(struct row_server *r)
{
	struct rowqueue_request *q, *next;

	if (!r)
		return;
	/* The ledger may already be gone. */
	rowqueue_done(&r->waiting);
	DL_FOREACH_SAFE(r->outstanding, q, next)
		rowqueue_request_free(q);
	peer_free(r->peer);
	free(r);
}

int row_server_bus_fd(const struct row_server *r)
{
	return peer_bus_fd(r->peer);
}

int row_server_lane_fd(const struct row_server *r)
{
	return peer_lane_fd(r->peer);
}

bool row_server_connected(const struct row_server *r)
{
	return peer_connected(r->peer);
}

bool row_server_idle(const struct row_server *r)
{
	return !r->waiting.count && !r->outstanding && !r->unopened_count;
}

void row_server_figures(const struct row_server *r, struct row_server_figures *ret)
{
	*ret = r->figures;
}

void row_server_charge(struct row_server *r, struct owners *owners)
{
	r->owners = owners;
}

struct spenders {
	uint64_t now_ns, most_ns; /* most_ns: of the one who spent most */
	unsigned count;
};

static void note_spent(void *ctx, const struct owner *w)
{
	struct spenders *s = ctx;
	const uint64_t spent_ns = rowqueue_spent(w, s->now_ns);

	s->most_ns = numbers_larger(s->most_ns, spent_ns);
	s->count += spent_ns >= REST_LEAST_NS / 4;
}

/* Sets how long the extractor sleeps now: the owner who spent most waits for as long as it must,
 * and others for a smaller part. So nobody's files slow down those of others, which may also end a
 * pause. */
static void set_rest(struct row_server *r, uint64_t now_ns)
{
	const struct rowqueue_request *q = r->outstanding;
	uint64_t spent = rowqueue_least_spent(&r->waiting, now_ns), part = LASTWORD_PARTS;

	/* The extractor works on the first one. The others come next. */
	for (; q; q = q->next)
		spent = numbers_smaller(spent, rowqueue_spent(q->owner, now_ns));
	/* In steps, since each change ends a pause. */
	if (r->owners && spent < r->most_ns)
		part = spent * LASTWORD_PARTS / r->most_ns;
	peer_rest(r->peer, r->rest_ms * part / LASTWORD_PARTS);
}

void row_server_rest(struct row_server *r, uint64_t ms, uint64_t limit_ns)
{
	struct spenders s = { .now_ns = clock_mono_ns() };

	r->rest_ms = ms;
	if (ms && r->owners)
		owners_each(r->owners, note_spent, &s);
	/* Otherwise many owners could spend as much as one who spent far too much. */
	s.most_ns = numbers_smaller(s.most_ns, limit_ns * REST_LIMITS / (s.count + 1));
	r->most_ns = numbers_larger(s.most_ns, REST_LEAST_NS);
	set_rest(r, s.now_ns);
}

/* Renews a request that already waits, perhaps without a descriptor, instead of making a second
 * one. */
static bool renew(struct row_server *r, uint16_t slot, int fd)
{
	struct rowqueue_request *q = rowqueue_find(&r->waiting, slot,
						   tables_file_serial(r->config.tables, slot));

	if (!q)
		return false;
	if (q->fd >= 0 || fd < 0) {
		closing_give(fd);
		return true;
	}
	rowqueue_take(&r->waiting, q);
	forget(r, q);
	return false;
}

void row_server_wanted(struct row_server *r, uint16_t slot, struct owner *owner, uint64_t now_ns)
{
	struct rowqueue_request *q = rowqueue_find(&r->waiting, slot,
						   tables_file_serial(r->config.tables, slot));
	struct owner *former = q ? q->owner : NULL;

	if (!former || former == owner ||
	    rowqueue_spent(owner, now_ns) >= rowqueue_spent(former, now_ns) ||
	    !rowqueue_move(&r->waiting, q, owner))
		return;
	owner_hold(r->owners, owner, OWNER_QUEUE, 1);
	owner_release(r->owners, former, OWNER_QUEUE, 1);
}

static int no_memory(struct row_server *r, uint16_t slot)
{
	r->figures.full++;
	tables_file_full(r->config.tables, slot);
	return -ENOMEM;
}

int row_server_request(struct row_server *r, uint16_t slot, int fd, const struct quarantine_key *of,
		       struct str name, struct owner *owner)
{
	if (renew(r, slot, fd))
		return 0;

	struct rowqueue_request *q = calloc(1, sizeof(*q));

	if (!q) {
		closing_give(fd);
		return no_memory(r, slot);
	}
	q->slot = slot;
	q->serial = tables_file_serial(r->config.tables, slot);
	q->fd = fd;
	q->spare_fd = -1;
	q->of = *of;
	q->alone = quarantine_deaths(r->config.quarantine, QUARANTINE_ROWS, of) > 0;
	q->name_len = name.len < sizeof(q->name) ? name.len : (uint32_t)sizeof(q->name);
	if (q->name_len)
		memcpy(q->name, name.data, q->name_len);
	if (r->owners && owner) {
		q->owner = owner;
		owner_hold(r->owners, owner, OWNER_QUEUE, 1);
	}
	if (!rowqueue_add(&r->waiting, q)) {
		forget(r, q);
		return no_memory(r, slot);
	}
	r->figures.asked++;
	return 0;
}

bool row_server_take_unopened(struct row_server *r, uint16_t *ret_slot)
{
	while (r->unopened_count) {
		const struct unopened u = r->unopened[0];

		memmove(r->unopened, r->unopened + 1, --r->unopened_count * sizeof(u));
		if (tables_file_serial(r->config.tables, u.slot) == u.serial) {
			*ret_slot = u.slot;
			return true;
		}
	}
	return false;
}

/* Removes a request from the outstanding ones. */
static void leave(struct row_server *r, struct rowqueue_request *q)
{
	DL_DELETE(r->outstanding, q);
	r->in_flight--;
}

static void finish(struct row_server *r, struct rowqueue_request *q)
{
	leave(r, q);
	r->moved_ns = clock_mono_ns();
	r->timeouts = 0;
	forget(r, q);
}

/* Charges the owner for the time that the extractor reports, but at most for the time that has
 * passed. */
static void pay(struct row_server *r, struct rowqueue_request *q, uint64_t cpu_ns, uint64_t now_ns)
{
	const uint64_t passed = now_ns > q->sent_ns ? now_ns - q->sent_ns : 0;

	cpu_ns = numbers_smaller(cpu_ns, passed);
	r->figures.cpu_ns += cpu_ns;
	if (q->owner)
		owner_spend(q->owner, OWNER_ROWS_CPU, cpu_ns, now_ns);
}

/* Queues an outstanding request again. Without a descriptor the file will be opened again. */
static void repeat(struct row_server *r, struct rowqueue_request *q)
{
	leave(r, q);
	closing_give(q->fd);
	q->fd = q->spare_fd;
	q->spare_fd = -1;
	q->message_sent = q->began = q->stopping = false;
	if (rowqueue_add(&r->waiting, q))
		return;
	(void)no_memory(r, q->slot);
	forget(r, q);
}

/* Handles that the extractor put the file aside. */
static void put_aside(struct row_server *r, struct rowqueue_request *q)
{
	q->stops++;
	r->figures.aside++;
	if (q->owner) {
		owner_refuse(q->owner, OWNER_ROWS_CPU, 1);
		if (q->owner->refused[OWNER_ROWS_CPU] == ROW_SERVER_STOPS_TOLD &&
		    r->config.on_aside)
			r->config.on_aside(r->config.ctx, q->owner);
	}
	repeat(r, q);
	r->moved_ns = clock_mono_ns();
}

/* Ends a request without rows. */
static void give_up(struct row_server *r, struct rowqueue_request *q)
{
	if (tables_file_serial(r->config.tables, q->slot) == q->serial) {
		tables_rows_abort(r->config.tables, q->slot);
		tables_file_none(r->config.tables, q->slot);
	}
	r->figures.quarantined++;
}

static void blame(struct row_server *r, struct rowqueue_request *q, enum lastword_end end,
		  uint64_t now_ns)
{
	const enum quarantine_verdict v = quarantine_blame(r->config.quarantine, QUARANTINE_ROWS,
							   &q->of, end, now_ns);

	q->alone = true;
	r->config.on_death(r->config.ctx, (struct str){ .data = q->name, .len = q->name_len },
			   &q->of, end, v);
}

static struct rowqueue_request *find(struct row_server *r, uint64_t id)
{
	struct rowqueue_request *q;

	DL_FOREACH(r->outstanding, q) {
		if (q->id == id)
			return q;
	}
	return NULL;
}

/* Returns the request whose file the extractor named last; this file is blamed for its end. NULL:
 * no file is blamed: the extractor names each file before it parses it, and may end for other
 * reasons. */
static struct rowqueue_request *guilty(struct row_server *r, const struct lastword *last)
{
	return last->kind == LASTWORD_FILE ? find(r, last->id) : NULL;
}

/* Handles that the extractor is gone: repeats its requests. If it was dropped here, drop() has
 * already blamed the file. */
static void lost_peer(struct row_server *r)
{
	const struct lastword last = peer_lastword(r->peer);
	const uint64_t now_ns = clock_mono_ns();
	struct rowqueue_request *q, *next;

	q = peer_dropped(r->peer) ? NULL : guilty(r, &last);
	if (q) {
		pay(r, q, last.spent_ns, now_ns);
		blame(r, q, last.end, now_ns);
	}
	DL_FOREACH_SAFE(r->outstanding, q, next) {
		if (tables_file_serial(r->config.tables, q->slot) == q->serial)
			tables_rows_abort(r->config.tables, q->slot);
		if (quarantine_check(r->config.quarantine, QUARANTINE_ROWS, &q->of, now_ns)) {
			give_up(r, q);
			finish(r, q);
			continue;
		}
		repeat(r, q);
	}
}

/* Drops the extractor for its handling of a file: q, or else the one that it was working on. */
static void drop(struct row_server *r, struct rowqueue_request *q, enum lastword_end end,
		 uint64_t now_ns)
{
	const struct lastword last = peer_lastword(r->peer);

	if (!q)
		q = guilty(r, &last);
	if (q) {
		pay(r, q, last.spent_ns, now_ns);
		blame(r, q, end, now_ns);
	}
	peer_drop(r->peer);
}

/* Makes a request wait for a minute, or for longer after earlier times, and then come last. */
static void pause_request(struct row_server *r, struct rowqueue_request *q, uint64_t spent_ns,
			  uint64_t now_ns)
{
	const unsigned doubled = numbers_smaller(q->timeouts, PAUSE_DOUBLED_MAX);

	pay(r, q, spent_ns, now_ns);
	q->alone = true;
	q->stops++;
	q->timeouts++;
	q->again_ns = now_ns + (DEADLINE_NS << doubled);
}

/* The extractor has not answered for long. If it did not work either, restarts it. The file that it
 * was working on is blamed only if it took too much cpu time. Otherwise the host may be busy, so
 * the file is tried again after a pause, when no other file waits. */
static void time_out(struct row_server *r, uint64_t now_ns)
{
	const struct lastword last = peer_lastword(r->peer);
	const bool works = last.kind != LASTWORD_NOTHING && last.spent_ns &&
			   (last.id != r->seen.id || last.spent_ns != r->seen.spent_ns);
	struct rowqueue_request *q = guilty(r, &last);

	if (last.spent_ns >= SLOW_NS) {
		drop(r, NULL, LASTWORD_SLOW, now_ns);
		return;
	}
	if (works) {
		r->seen = last;
		r->moved_ns = now_ns;
		return;
	}
	if (q)
		pause_request(r, q, last.spent_ns, now_ns);
	r->timeouts++;
	peer_drop(r->peer);
}

uint32_t row_server_pid(const struct row_server *r)
{
	return r->outstanding && !peer_dropped(r->peer) ? peer_pid(r->peer) : 0;
}

void row_server_blocked(struct row_server *r, uint64_t now_ns)
{
	const struct lastword last = peer_lastword(r->peer);
	struct rowqueue_request *q = guilty(r, &last);

	if (!r->outstanding || peer_dropped(r->peer))
		return;
	r->waiting.wary_until_ns = now_ns + WARY_NS;
	/* A file of root is tried again at once: only its disk can be slow. */
	if (q && q->of.uid) {
		pause_request(r, q, last.spent_ns, now_ns);
		blockers_note(&r->blockers, q->of.uid, now_ns);
		log_warning("the lock of a file keeps prof-deltas waiting; files of user %u get no "
			    "rows for a minute or longer",
			    (unsigned)q->of.uid);
	}
	peer_drop(r->peer);
}

/* Takes one message of the extractor. Returns false if it broke the rules and must be disconnected;
 * *ret_about is the request concerned, or NULL. */
static bool take(struct row_server *r, const struct msg *m, struct rowqueue_request **ret_about)
{
	struct tables *t = r->config.tables;
	const uint64_t now_ns = clock_mono_ns();
	uint64_t id = m->rows_end.id; /* id is the first field of all four messages */
	int v = 0;

	struct rowqueue_request *q = find(r, id);

	*ret_about = q;
	if (!q)
		return false;
	/* The file may be gone, or the transfer may have been given up here. */
	if (tables_file_serial(t, q->slot) != q->serial ||
	    (q->began && !tables_rows_coming(t, q->slot)))
		q->slot = 0;
	switch (m->id) {
	case MSG_ROWS_BEGIN:
		if (q->began)
			return false;
		q->began = true;
		if (m->rows_begin.status != MSG_ROWS_OK)
			pay(r, q, m->rows_begin.cpu_ns, now_ns);
		if (m->rows_begin.status == MSG_ROWS_LATER && q->stopping && q->slot) {
			put_aside(r, q);
			return true;
		}
		if (m->rows_begin.status != MSG_ROWS_OK) {
			if (m->rows_begin.status <
			    sizeof(r->figures.refused) / sizeof(r->figures.refused[0]))
				r->figures.refused[m->rows_begin.status]++;
			tables_file_none(t, q->slot);
			finish(r, q);
			return true;
		}
		/* The file has got rows in another way, or was given up. */
		if (tables_file_state(t, q->slot) != TABLES_FILE_PENDING ||
		    tables_rows_coming(t, q->slot))
			q->slot = 0;
		if (r->config.rows_come && q->slot)
			r->config.rows_come(r->config.ctx, tables_rows_bytes(m->rows_begin.span,
									     m->rows_begin.rows));
		v = tables_rows_begin(t, q->slot, m->rows_begin.base, m->rows_begin.span,
				      m->rows_begin.rows, m->rows_begin.rules);
		break;
	case MSG_ROWS_RULES:
		if (m->rows_rules.rules.len % sizeof(struct unwind_rule))
			return false;
		v = tables_rows_rules(t, q->slot, (const void *)m->rows_rules.rules.data,
				      m->rows_rules.rules.len / sizeof(struct unwind_rule));
		break;
	case MSG_ROWS_CHUNK:
		if (m->rows_chunk.rows.len % sizeof(struct unwind_row_wire))
			return false;
		v = tables_rows_chunk(t, q->slot, (const void *)m->rows_chunk.rows.data,
				      m->rows_chunk.rows.len / sizeof(struct unwind_row_wire));
		break;
	default:
		pay(r, q, m->rows_end.cpu_ns, now_ns);
		v = tables_rows_end(t, q->slot);
		if (!v) {
			r->figures.answered++;
			finish(r, q);
		}
		break;
	}
	if (v == TABLES_BAD_ROWS && q->slot) {
		r->figures.refused[0]++;
		return false;
	}
	if (v) {
		const bool full = v == TABLES_FULL || v == -ENOMEM;

		/* The rows do not fit, memory is short, or no process maps the file any more. So it
		 * has no rows, for now or permanently, and the rest of the answer is ignored. */
		r->figures.full += full;
		tables_rows_abort(t, q->slot);
		if (full)
			tables_file_full(t, q->slot);
		else
			tables_file_none(t, q->slot);
		q->slot = 0;
		if (m->id == MSG_ROWS_END)
			finish(r, q);
	}
	return true;
}

/* Takes all waiting messages. Returns 0 or -errno. */
static int receive(struct row_server *r)
{
	for (;;) {
		struct rowqueue_request *about = NULL;
		struct msg m;
		const int e = peer_recv(r->peer, &m);

		switch (e) {
		case 0:
			if (!take(r, &m, &about))
				drop(r, about, LASTWORD_CRASH, clock_mono_ns());
			break;
		case PEER_UNRULY:
		case PEER_SCHEMA:
			drop(r, NULL, LASTWORD_CRASH, clock_mono_ns());
			break;
		case PEER_CAME:
			break;
		case PEER_WENT:
			lost_peer(r);
			break;
		case PEER_EMPTY:
			return 0;
		default:
			return e;
		}
	}
}

/* Whether another request may be sent in advance. While an owner's files take long, or large ones
 * are under way, it would wait behind them, and later requests behind it. */
static bool may_send_more(const struct row_server *r, uint64_t now_ns)
{
	const struct rowqueue_request *q;
	uint64_t ns = 0;

	DL_FOREACH(r->outstanding, q) {
		if (q->stops || rowqueue_spent(q->owner, now_ns) > ROW_SERVER_SLICE_NS)
			return false;
		ns += rowqueue_guess(q);
	}
	return r->in_flight < IN_FLIGHT && ns < AHEAD_NS;
}

static int transmit(struct row_server *r, uint64_t now_ns)
{
	struct rowqueue_request *q;

	int e = peer_greet(r->peer);

	/* The extractor gets no file before it can report which one it is working on. */
	if (e || !peer_has_page(r->peer))
		return e == -ENOTCONN ? 0 : e;
	/* A file that an extractor died on is requested alone. */
	bool alone = r->outstanding && r->outstanding->alone;
	while (may_send_more(r, now_ns) && r->unopened_count < IN_FLIGHT && !alone) {
		q = rowqueue_next(&r->waiting, !r->in_flight, now_ns);
		if (!q || (q->alone && r->in_flight))
			break;
		if (q->of.uid && blockers_has(&r->blockers, q->of.uid, now_ns)) {
			q->again_ns = now_ns + BLOCKERS_REST_NS;
			continue;
		}
		rowqueue_take(&r->waiting, q);
		if (quarantine_check(r->config.quarantine, QUARANTINE_ROWS, &q->of, now_ns)) {
			give_up(r, q);
			forget(r, q);
			continue;
		}
		if (q->fd < 0) {
			r->unopened[r->unopened_count++] = (struct unopened){ .slot = q->slot,
									      .serial = q->serial };
			r->figures.asked--;
			forget(r, q);
			continue;
		}
		alone = q->alone;
		if (!r->outstanding)
			r->moved_ns = now_ns;
		q->id = ++r->next_id;
		q->sent_ns = now_ns;
		DL_APPEND(r->outstanding, q);
		r->in_flight++;
		if (q->spare_fd < 0)
			q->spare_fd = fcntl(q->fd, F_DUPFD_CLOEXEC, 0);
	}
	DL_FOREACH(r->outstanding, q) {
		e = 0;
		if (!q->message_sent) {
			struct msg m = { .id = MSG_ROWS_REQUEST,
					 .rows_request = { .id = q->id,
							   .size = q->of.size,
							   .name = { .data = q->name,
								     .len = q->name_len } } };

			e = peer_put(r->peer, &m);
			q->message_sent = e == 0;
		}
		if (!e && q->fd >= 0) {
			e = peer_send_file(r->peer, q->id, q->fd);
			if (e == 0) {
				closing_give(q->fd);
				q->fd = -1;
			}
		}
		if (e)
			break;
	}
	e = peer_flush(r->peer);
	return e == -EAGAIN || e == -ENOTCONN ? 0 : e;
}

/* Returns how much cpu time a file may take while others wait. */
static uint64_t slice_of(const struct rowqueue_request *q, unsigned others, uint64_t now_ns)
{
	const unsigned doubled = q->stops < ROW_SERVER_SLICES_MAX ? q->stops
								  : ROW_SERVER_SLICES_MAX;
	const uint64_t share = ROW_SERVER_ROUND_NS / (others + 1),
		       slice = share > ROW_SERVER_SLICE_NS ? share : ROW_SERVER_SLICE_NS;

	return rowqueue_spent(q->owner, now_ns) > ROW_SERVER_SPENDER_NS ? ROW_SERVER_SLICE_NS
									: slice << doubled;
}

/* Tells the extractor to put aside the file that it works on, if that takes long and others
 * wait. */
static void make_way(struct row_server *r, uint64_t now_ns)
{
	struct rowqueue_request *q = r->outstanding, *o;

	if (!q || q->began)
		return;
	const uint64_t spent = rowqueue_spent(q->owner, now_ns) + ROW_SERVER_SLICE_NS;
	unsigned others = rowqueue_poorer(&r->waiting, q->owner, ROW_SERVER_SLICE_NS, now_ns);

	DL_FOREACH(r->outstanding, o)
		others += o->owner != q->owner && rowqueue_spent(o->owner, now_ns) < spent;
	const uint64_t id = others ? q->id : 0, after_ns = slice_of(q, others, now_ns);

	if (id != r->stopped || (id && after_ns != r->stopped_after_ns))
		peer_stop(r->peer, id, after_ns);
	r->stopped = id;
	r->stopped_after_ns = after_ns;
	q->stopping |= id != 0;
}

int row_server_run(struct row_server *r, uint64_t now_ns)
{
	/* If the lane cannot accept a peer for lack of descriptors, continue with the rest. */
	const int lane = peer_poll_lane(r->peer);
	int e = receive(r);

	if (e)
		return e;
	/* The extractor may have to sleep for most of the time. */
	const uint64_t patience = (DEADLINE_NS + DEADLINE_NS / LASTWORD_TICK_MS * r->rest_ms)
				  << numbers_smaller(r->timeouts, DEADLINE_DOUBLED_MAX);

	if (r->outstanding && !peer_dropped(r->peer) && now_ns > r->moved_ns &&
	    now_ns - r->moved_ns > patience)
		time_out(r, now_ns);
	e = transmit(r, now_ns);
	make_way(r, now_ns);
	set_rest(r, now_ns);
	return e ? e : lane;
}
