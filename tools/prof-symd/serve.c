/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of work in the loop. Each turn
 *
 * 1. waits until something happens, or rests if an allocation failed in the last turn;
 * 2. takes files and answers of prof-bpf, which samples in the queue may wait for;
 * 3. divides the memory, and gives up overdue requests;
 * 4. takes messages of the stream into the queue, requests the objects that they need, and names
 *    the events at the head of the queue. It repeats this while the queue is full and its head
 *    moves. Objects come before native names: their memory may soon be gone, and the DWARF of one
 *    native frame may take a second;
 * 5. sends the requests that prof-bpf did not take before, the end of the stream if a peer is gone,
 *    and the batch, every FLUSH_MS.
 *
 * Steps 4 and 5 begin when prof-export has connected. A failed allocation ends only its step
 * (`forgive`): the loop does its other work, and then rests.
 */
#include "tools/prof-symd/serve.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/cell/deploy.h"
#include "common/names/program/program.h"
#include "common/wire/pairs.h"
#include "common/wire/peer/lastword.h"
#include "tools/prof-symd/files/memory_share.h"
#include "tools/prof-symd/route.h"

#define FLUSH_MS 100
#define TICK_MS 5000	   /* a fallback, since the stream sends something every second */
#define TURN_NS 5000000ull /* time for naming before files and messages get their turn */
#define SEND_MS 200
#define INTERPRETED_FIRST_NS 100000000ull /* for so long, naming waits for interpreted frames */
#define SHARE_NS 20000000ull
/* If an allocation fails, the loop waits for a moment. After REST_MOST_NS without memory the tool
 * ends, since a restart may help. */
#define REST_MS 50
#define REST_MOST_NS 10000000000ull
#define SERVE_NAME_BYTES 64 /* size of a function in the tables, without its text */

struct serve {
	const struct serve_links *links;
	struct route route;
	struct memory_share share;
	uint64_t shared_ns;
	uint64_t ran_ns; /* when samples last got their turn, */
	bool held_back;	 /* and whether they wait for interpreted frames */
	struct filestore files;
	struct jit jit;
	struct objects *objects;
	struct stream_out out;
	struct namer *namer;
	bool starves;	     /* an allocation failed in this turn of the loop */
	uint64_t starved_ns; /* when allocations began to fail; 0: there is memory */
	struct pairs pairs;  /* answers of prof-bpf, paired with their files */
	bool renews;	     /* the launcher has requested a new epoch */
	struct msg held;     /* the first message of an epoch that cannot begin yet */
	bool holding, export_there, peer_gone;
	bool leaving; /* takes no more messages, but still requests files */
};

/* --- files --- */

static void without(void *ctx, struct filestore_file *f)
{
	const struct serve *s = ctx;
	struct msg_file file;

	if (!namer_file(s->namer, f->file, &file))
		return;
	if (f->died || f->killed)
		s->links->say_died(file.path, f->killed);
	else if (f->dwarf_lost)
		s->links->say_lost(file.path, f->dwarf_kills);
	else if (!f->dwarf_too_large)
		s->links->say_killed(file.path);
	else if (s->files.dwarf_too_large == 1)
		s->links->say_too_large(file.path);
}

static void say_code_lost(void *ctx, uint64_t process, uint32_t pid)
{
	const struct serve *s = ctx;

	s->links->say_code_lost(pid);
}

/* Passes files on to their requesters. The descriptor is -1 if a file does not come. */
static void hand_out(struct serve *s, uint64_t now_ns)
{
	struct pair p;

	while (pairs_take(&s->pairs, now_ns, &p))
		if (!jit_answer(&s->jit, p.id, p.fd, now_ns))
			filestore_answer(&s->files, p.id, p.fd, now_ns);
}

static void take_answer(struct serve *s, const struct msg_file_answer *m, uint64_t now_ns)
{
	if (!m->id)
		return;
	if (pairs_full(&s->pairs))
		hand_out(s, now_ns);
	filestore_place(&s->files, m->id, m->place);
	pairs_message(&s->pairs, m->id, m->status == 0, now_ns);
}

/* Takes all waiting messages. Returns 0 or -errno. After -ENOMEM the other messages are left for
 * later; an answer that could not be taken is requested again. */
static int take_answers(struct serve *s, uint64_t now_ns)
{
	for (;;) {
		struct msg m;
		int r = peer_recv(s->links->files, &m);

		if (r == PEER_EMPTY)
			return 0;
		if (r == PEER_CAME || r == PEER_WENT)
			continue; /* the stream tells whether prof-bpf is connected */
		if (r)
			return r > 0 ? -EPROTO : r;
		if (m.id == MSG_FILE_ANSWER)
			take_answer(s, &m.file_answer, now_ns);
		else if (m.id == MSG_MEMORY_ANSWER)
			r = objects_answer(s->objects, &m.memory_answer, now_ns);
		if (r)
			return r;
	}
}

static int take_files(struct serve *s, uint64_t now_ns)
{
	int r = take_answers(s, now_ns);

	if (r && r != -ENOMEM)
		return r;
	s->starves |= r == -ENOMEM;
	for (;;) {
		uint64_t id;
		int fd;

		r = peer_recv_file(s->links->files, &id, &fd);
		if (r == -EAGAIN || r == -ENOTCONN)
			break;
		if (r)
			return r;
		if (pairs_full(&s->pairs))
			hand_out(s, now_ns);
		pairs_file(&s->pairs, id, fd, now_ns);
	}
	/* Do this last: an overdue half of a pair may just have found its other half. */
	hand_out(s, now_ns);
	return 0;
}

/* --- the stream --- */

static void beat(struct serve *s)
{
	s->links->beat(s->links->ctx, s->namer ? namer_counts(s->namer).samples : 0);
}

/* The cpu limit may make the loop sleep for many seconds in total, so beat while it sleeps. */
static void beat_at_rest(void *ctx)
{
	beat(ctx);
}

static int flush(void *ctx, struct span batch)
{
	struct serve *s = ctx;

	for (;;) {
		int r = bus_send_wait(s->links->named, batch, SEND_MS);

		beat(s);
		if (r != -ETIMEDOUT)
			return r;
		if (deploy_life_over(s->links->life_fd, &s->renews))
			return -ECANCELED;
	}
}

/* Takes messages until there are no more, the queue is full, or a new epoch must wait for the
 * queue. Returns 0, SERVE_MALFORMED, SERVE_SCHEMA or -errno. */
static int take_messages(struct serve *s, uint64_t now_ns)
{
	struct peer *stream = s->links->stream;

	while (!namer_full(s->namer) && !namer_ended(s->namer)) {
		int r = 0;

		if (!s->holding) {
			r = peer_recv(stream, &s->held);
			namer_missing(s->namer, peer_missing(stream));
			switch (r) {
			case 0:
				s->holding = true;
				break;
			case PEER_CAME:
				continue;
			case PEER_WENT:
				s->peer_gone = true;
				return 0;
			case PEER_EMPTY:
				/* Without a keeper, leave when no message waits: the next prof-symd
				 * will have one. */
				s->leaving |= program_keeper_gone();
				return 0;
			case PEER_UNRULY:
				return SERVE_MALFORMED;
			case PEER_SCHEMA:
				return SERVE_SCHEMA;
			default:
				return r;
			}
		}
		if (peer_epoch_began(stream)) {
			r = namer_forget(s->namer, now_ns);
			if (r)
				return r == NAMER_WAIT ? 0 : r;
			peer_epoch_taken(stream);
		}
		r = namer_take(s->namer, &s->held, now_ns);
		s->holding = r == -ENOMEM;
		if (r)
			return r;
	}
	return 0;
}

static int wait_for_something(struct serve *s, bool take_stream)
{
	uint64_t now_ns = clock_mono_ns(), deadline = filestore_deadline(&s->files);
	uint64_t generated = jit_deadline(&s->jit, now_ns);
	uint64_t interpreted = objects_deadline(s->objects);
	uint64_t looks = namer_looks_until(s->namer), aside = namer_next_look(s->namer);
	int timeout = s->out.batch.len ? FLUSH_MS : TICK_MS;
	struct pollfd p[] = {
		{ .fd = s->links->life_fd, .events = POLLIN },
		{ .fd = bus_fd(s->links->named), .events = POLLIN },
		{ .fd = peer_bus_fd(s->links->files), .events = POLLIN },
		{ .fd = peer_lane_fd(s->links->files), .events = POLLIN },
		{ .fd = take_stream ? peer_bus_fd(s->links->stream) : -1, .events = POLLIN },
	};

	if (generated && (!deadline || generated < deadline))
		deadline = generated;
	if (interpreted && (!deadline || interpreted < deadline))
		deadline = interpreted;
	if (looks > now_ns && (!deadline || looks < deadline))
		deadline = looks;
	if (s->held_back && deadline > s->ran_ns + INTERPRETED_FIRST_NS)
		deadline = s->ran_ns + INTERPRETED_FIRST_NS;
	if (aside && (!deadline || aside < deadline))
		deadline = aside;
	if (deadline) {
		uint64_t left = deadline > now_ns ? (deadline - now_ns) / 1000000 + 1 : 0;

		timeout = left < (uint64_t)timeout ? (int)left : timeout;
	}
	if (peer_has_unsent(s->links->files) && timeout > FLUSH_MS)
		timeout = FLUSH_MS; /* to send what could not be sent */
	if (namer_paused(s->namer))
		timeout = 0;
	if (s->peer_gone) { /* a closed lane stays readable, so do not wait for it */
		p[2].fd = -1;
		p[3].fd = -1;
	}
	if (poll(p, sizeof(p) / sizeof(p[0]), timeout) < 0 && errno != EINTR)
		return -errno;
	return (p[0].revents && deploy_life_over(s->links->life_fd, &s->renews)) ? SERVE_LIFE_OVER
										 : 0;
}

/* Handles that prof-export connected or disconnected. */
static int watch_export(struct serve *s)
{
	for (;;) {
		const int event = bus_event(s->links->named);

		if (event == BUS_EMPTY)
			return 0;
		if (event == BUS_PEER_WENT)
			return SERVE_EXPORT_GONE;
		s->export_there = true;
	}
}

/* Gives programs and their DWARF all memory that the other parts leave. They get what is left
 * because they can be opened again. */
static void share_memory(struct serve *s, uint64_t now_ns)
{
	if (now_ns - s->shared_ns < SHARE_NS)
		return;
	s->shared_ns = now_ns;

	const struct objects_counts objects = objects_counts(s->objects);
	const uint64_t others = jit_bytes(&s->jit) + objects.held_bytes + namer_bytes(s->namer);

	s->files.budget = memory_share_programs(&s->share, others, s->files.bytes, s->files.evicted,
						now_ns);
}

/* Handles a failed allocation: it does not end the loop, which continues with the other work and
 * then waits. */
static int forgive(struct serve *s, int r)
{
	s->starves |= r == -ENOMEM;
	return r == -ENOMEM ? 0 : r;
}

/* Frees memory that can be rebuilt, and waits for a moment, after a turn in which an allocation
 * failed. No data is lost: messages wait at their sender, and prof-bpf counts what it cannot keep.
 * Returns -ENOMEM if this has lasted too long. */
static int rest(struct serve *s, uint64_t now_ns)
{
	struct pollfd life = { .fd = s->links->life_fd, .events = POLLIN };

	s->starves = false;
	if (!s->starved_ns)
		s->starved_ns = now_ns;
	if (now_ns - s->starved_ns >= REST_MOST_NS)
		return -ENOMEM;
	filestore_relieve(&s->files);
	objects_relieve(s->objects);
	return poll(&life, 1, REST_MS) > 0 && deploy_life_over(s->links->life_fd, &s->renews)
		       ? SERVE_LIFE_OVER
		       : 0;
}

static int serve_loop(struct serve *s, struct serve_counts *counts)
{
	uint64_t flushed_ns = 0, began_ns = 0;
	int refused = 0;

	for (;;) {
		bool ended = namer_ended(s->namer), full = namer_full(s->namer), waiting = false;
		uint64_t now_ns;
		int r;

		now_ns = clock_mono_ns();
		if (began_ns) {
			filestore_worked(&s->files, now_ns - began_ns, now_ns);
			namer_worked(s->namer, now_ns - began_ns, now_ns);
		}
		if (s->starves) {
			r = rest(s, now_ns);
		} else {
			s->starved_ns = 0;
			r = wait_for_something(s, s->export_there && !ended && !full &&
							  !s->holding && !s->peer_gone &&
							  !s->leaving);
		}
		if (r)
			return r;
		began_ns = now_ns = clock_mono_ns();
		beat(s);
		r = watch_export(s);
		if (r)
			return r == SERVE_EXPORT_GONE && ended ? refused : r;
		r = take_files(s, now_ns);
		if (r)
			return r;
		share_memory(s, now_ns);
		filestore_tick(&s->files, now_ns);
		jit_tick(&s->jit, now_ns);
		if (s->peer_gone || s->leaving || refused)
			namer_ends(s->namer, now_ns);
		if (!s->export_there)
			continue;
		if (ended) {
			r = forgive(s, stream_flush(&s->out));
			if (r < 0)
				return r;
			continue;
		}
		if (s->renews)
			namer_renew(s->namer);
		s->renews = false;
		/* Repeat until nothing moves: taking messages frees space in the peer's queue, and
		 * sending frees space in ours. */
		do {
			beat(s);
			if (!s->peer_gone && !s->leaving && !refused) {
				r = forgive(s, take_messages(s, now_ns));
				if (r < 0)
					return r;
				refused = r;
			}
			full = namer_full(s->namer);
			r = forgive(s, objects_send(s->objects, now_ns));
			if (r < 0)
				return r;
			/* Wait for interpreted frames first: native names may take long, and their
			 * objects may be gone by then. But a program that keeps running new
			 * functions must not keep all samples waiting, so a backlog comes first. */
			waiting = !full && !s->peer_gone && !namer_is_late(s->namer, now_ns) &&
				  !namer_paused(s->namer) &&
				  now_ns < s->ran_ns + INTERPRETED_FIRST_NS &&
				  (objects_deadline(s->objects) > now_ns ||
				   namer_looks_until(s->namer) > now_ns);
			s->held_back = waiting;
			if (waiting)
				break;
			s->ran_ns = now_ns;
			r = namer_run(s->namer, now_ns);
			waiting = r == NAMER_WAIT || r == -ENOMEM;
			r = forgive(s, r);
			if (r < 0)
				return r;
		} while (full && !waiting);
		r = forgive(s, objects_send(s->objects, now_ns));
		if (r < 0)
			return r;
		(void)peer_flush(s->links->files);
		if ((s->peer_gone || s->leaving || refused) && !waiting && !s->holding &&
		    !namer_ended(s->namer)) {
			counts->peer_lost = !refused;
			counts->keeper_gone = program_keeper_gone();
			/* If no hello was sent, the named stream needs no end. */
			if (!namer_begun(s->namer))
				return refused;
			r = forgive(s, namer_end(s->namer, MSG_END_PEER_LOST, now_ns));
			if (r < 0)
				return r;
		}
		if (namer_ended(s->namer) || now_ns - flushed_ns >= FLUSH_MS * 1000000ull) {
			r = forgive(s, stream_flush(&s->out));
			if (r < 0)
				return r;
			flushed_ns = now_ns;
		}
	}
}

int serve_run(const struct serve_links *links, const struct budget *budget,
	      struct serve_counts *ret_counts)
{
	struct serve *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	struct namer_limits limits = NAMER_LIMITS;

	limits.bytes = budget->definitions;
	limits.text = budget->names / 2;
	limits.functions = budget->names / 2 / SERVE_NAME_BYTES;
	/* prof-export's journal holds several epochs of this size. */
	limits.epoch = budget->model;
	s->links = links;
	s->route.files = links->files;
	memory_share_init(&s->share, budget);
	program_grow_with(memory_share_heap, &s->share);
	filestore_init(&s->files, budget->programs, budget->dwarf / 3 * 2, route_ask_file,
		       &s->route);
	s->files.without_hook = without;
	s->files.without_ctx = s;
	r = jit_init(&s->jit, budget->generated, route_ask_jit, &s->route);
	s->jit.say_lost = say_code_lost;
	s->jit.say_lost_ctx = s;
	if (r == 0)
		r = objects_new(route_ask_memory, &s->route, &s->objects);
	stream_out_init(&s->out, STREAM_BATCH, flush, s);
	/* Epochs are numbered from the clock, so that a receiver that outlives this process does
	 * not confuse our first epoch with one of our predecessor. */
	stream_out_epoch(&s->out, clock_wall_ns());
	if (r == 0)
		r = namer_new(&limits, &s->files, &s->out, &s->namer);
	s->route.namer = s->namer;
	if (r == 0)
		namer_use_jit(s->namer, &s->jit);
	if (r == 0)
		namer_leave_out(s->namer, links->names);
	if (r == 0)
		objects_budget(s->objects, budget->objects);
	if (r == 0)
		namer_use_objects(s->namer, s->objects, route_tell_runtime, &s->route);
	if (r == 0)
		namer_take_turns(s->namer, TURN_NS, links->say_slow);
	lastword_rest_with(beat_at_rest, s);
	if (r == 0)
		r = serve_loop(s, ret_counts);
	lastword_rest_with(NULL, NULL);
	if (r == -ECANCELED)
		r = SERVE_LIFE_OVER;
	if (r == -ENOTCONN)
		r = SERVE_EXPORT_GONE;
	if (s->namer)
		ret_counts->named = namer_counts(s->namer);
	ret_counts->dwarf_too_large = s->files.dwarf_too_large;
	ret_counts->code_lost = s->jit.lost;
	program_grow_with(NULL, NULL);
	namer_free(s->namer);
	objects_free(s->objects);
	jit_done(&s->jit);
	stream_out_done(&s->out);
	pairs_done(&s->pairs);
	free(s);
	return r;
}
