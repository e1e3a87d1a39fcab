/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/base/tables/blockers.h"
#include "common/names/program/fileworker.h"
#include "common/names/program/program_internal.h"
#include "common/names/program/sources.h"

/* A worker ends itself at most a second after a request has taken FILEWORKER_CPU_S. This limit is
 * one second higher, for a worker that was taken over and does not end itself. Tools run by hand
 * allow larger files, with one more second for each 16 MiB. */
#define LIMIT_S (FILEWORKER_CPU_S + 2)
#define SMALL_MAX (48ull << 20)
#define GROWS_NS 700000000ull /* prof-bpf reads the wanted heap about ten times a second */
#define MOST_AGAIN 64	      /* wants of one lookup; only a worker that is taken over has more */
#define SLICE_OF_ROOT_NS 500000000ull
#define PATIENT_NS 1000000ull /* how long a call waits for an answer of the patient worker */
/* How long the patient worker is reserved for a program that waits for a file. */
#define KEPT_NS 2500000000ull
/* Age after which an answer that was not requested again is dropped. */
#define UNCLAIMED_NS 1000000000ull

/* The workers of a class. */
struct workers {
	struct worker prompt, patient;
	struct program *programs[PROGRAMWIRE_PROGRAMS]; /* by slot, the same in both workers */
	/* The program whose lookup the patient worker runs, or for which it is reserved; NULL:
	 * none. */
	const struct program *of;
	uint64_t value; /* argument of that lookup */
	uint32_t flags;
	uint64_t kept_until_ns, unclaimed_ns;
};

static struct {
	uint64_t life_ns, heap, beside; /* limits of the next workers */
	uint64_t slice_ns;		/* set by program_take_turns; 0: wait for all answers */
	uint64_t (*more)(void *ctx, uint64_t heap);
	void *more_ctx;
	struct blockers blockers;
	struct workers classes[PROGRAM_CLASSES];
	struct programwire_answer answer;
	struct names names;
} pool = { .classes = { { .prompt = { .kind = FILEKEEPER_PROGRAMS_OF_ROOT, .socket = -1 },
			  .patient = { .kind = FILEKEEPER_SECOND_OF_ROOT, .socket = -1 } },
			{ .prompt = { .kind = FILEKEEPER_PROGRAMS_OF_OTHERS, .socket = -1 },
			  .patient = { .kind = FILEKEEPER_SECOND_OF_OTHERS, .socket = -1 } } } };

void program_use_keeper(int control, unsigned life_s, uint64_t heap, uint64_t beside)
{
	filekeeper_use(control);
	pool.beside = beside;
	pool.life_ns = life_s * 1000000000ull;
	pool.heap = heap;
}

bool program_keeper_gone(void)
{
	return filekeeper_gone();
}

void program_take_turns(uint64_t slice_ns)
{
	pool.slice_ns = slice_ns;
}

void program_until(uint64_t until_ns)
{
	worker_until(until_ns);
}

void program_grow_with(uint64_t (*more)(void *ctx, uint64_t heap), void *ctx)
{
	pool.more = more;
	pool.more_ctx = ctx;
}

void program_set_heap(uint64_t heap)
{
	pool.heap = heap;
}

/* --- the workers --- */

static struct workers *workers_of(const struct program *p)
{
	return &pool.classes[p->class];
}

static struct worker *worker_of(const struct program *p)
{
	return p->slow ? &workers_of(p)->patient : &workers_of(p)->prompt;
}

static int start(struct worker *w)
{
	return worker_start(w, pool.heap + pool.beside);
}

static unsigned limit_s(const struct program *p)
{
	const uint64_t max = p->dwarf_max;

	return LIMIT_S + (unsigned)(max > SMALL_MAX ? (max - SMALL_MAX) >> 24 : 0);
}

static void close_part(struct program *p, enum program_part part)
{
	if (p->fds[part] >= 0)
		close(p->fds[part]);
	p->fds[part] = -1;
}

static void forget_ahead(struct program *p)
{
	free(p->ahead);
	p->ahead = NULL;
	p->ahead_len = 0;
}

struct span workers_ahead(const struct program *p)
{
	return (struct span){ .data = p->ahead, .len = p->ahead_len };
}

/* Stores the answers to announced lookups. If there is no memory, they are requested later. */
static void keep_ahead(struct program *p, const struct programwire_answer *a)
{
	forget_ahead(p);
	if (!a->more.len)
		return;
	p->ahead = malloc(a->more.len);
	if (!p->ahead)
		return;
	memcpy(p->ahead, a->more.data, a->more.len);
	p->ahead_len = a->more.len;
}

/* Stores what an answer tells about the program. */
static void note(struct program *p, const struct programwire_answer *a)
{
	const uint64_t most = 4 * p->dwarf_max + (256u << 20);

	/* Bounded, since it is charged to the budget of all programs. */
	p->bytes = (size_t)numbers_smaller(a->head.bytes, most);
	if (!p->worker)
		return;
	p->unproven = a->head.flags & PROGRAMWIRE_UNPROVEN;
	p->step = a->head.step;
	p->cut = a->head.flags & PROGRAMWIRE_CUT;
	p->dwarf_lost |= (a->head.flags & PROGRAMWIRE_LOST) != 0;
	if (!(a->head.flags & PROGRAMWIRE_DEBUG))
		close_part(p, PROGRAM_DEBUG);
	if (!(a->head.flags & PROGRAMWIRE_SHARED))
		close_part(p, PROGRAM_SHARED);
	if (a->head.flags & PROGRAMWIRE_FACTS)
		p->facts = a->facts;
}

/* --- the patient worker --- */

/* Whether the patient worker works for another program or request. a is NULL if p only has to wait
 * for other programs. An answer that is not fetched does not reserve the worker forever. */
static bool is_taken(struct workers *c, const struct program *p, const struct programwire_ask *a)
{
	struct worker *w = &c->patient;
	const uint64_t now_ns = clock_mono_ns();

	if (!w->busy)
		return c->of && c->of != p && now_ns < c->kept_until_ns;
	if (p && c->of == p && (!a || (a->value == c->value && a->flags == c->flags)))
		return false;
	struct pollfd answered = { .fd = w->socket, .events = POLLIN };
	int r;

	if (poll(&answered, 1, 0) > 0) {
		if (!c->unclaimed_ns)
			c->unclaimed_ns = now_ns;
		if (now_ns - c->unclaimed_ns < UNCLAIMED_NS)
			return true;
	}
	r = worker_wait(w, UINT64_MAX, 0, LIMIT_S, &pool.answer, &pool.names);
	if (r == VERDICT_LATER)
		return true;
	if (r == VERDICT_LOST)
		worker_drop(w);
	c->of = NULL;
	return false;
}

/* Tells the worker to close p. */
static void close_there(struct worker *w, struct program *p)
{
	const struct programwire_ask a = { .kind = PROGRAMWIRE_CLOSE, .program = p->slot };

	p->worker = 0;
	/* If the worker does not accept the request, it is replaced before its next one. */
	if (w->socket >= 0 && worker_send(w, &a, NULL, 0))
		w->worked_ns = UINT64_MAX / 2;
}

/* Handles a request of the prompt worker that takes long. This worker becomes the patient one, if
 * the patient one has nothing to do. Otherwise it is replaced, and p waits for the patient one. */
static int hand_over(struct workers *c, struct program *p, const struct programwire_ask *a)
{
	p->slow = true;
	if (is_taken(c, p, a) || c->patient.busy) {
		p->worker = 0;
		(void)start(&c->prompt);
		return VERDICT_LATER;
	}
	const struct worker former = c->patient;

	c->patient = c->prompt;
	c->prompt = former;
	c->of = p;
	c->value = a->value;
	c->flags = a->flags;
	c->unclaimed_ns = 0;
	for (size_t i = 0; i < PROGRAMWIRE_PROGRAMS; i++) {
		struct program *q = c->programs[i];

		if (q && q != p && q->worker && q->worker == c->patient.number)
			close_there(&c->patient, q);
		else if (q && q->worker && q->worker == c->prompt.number)
			close_there(&c->prompt, q);
	}
	return VERDICT_LATER;
}

/* Sends a request or continues it, and returns the verdict of its answer. VERDICT_LATER: the answer
 * has not come. After VERDICT_LOST there is no worker. */
static int exchange(struct program *p, const struct programwire_ask *a, const int *fds,
		    size_t count)
{
	struct workers *c = workers_of(p);
	struct worker *w = worker_of(p);
	const bool turns = a->kind == PROGRAMWIRE_LOOKUP && pool.slice_ns;
	/* Files of root get more time: they are no attack. */
	const uint64_t slice_ns = p->class == PROGRAM_OF_ROOT ? SLICE_OF_ROOT_NS : pool.slice_ns;
	uint64_t wait_ns = 0;
	int r = 0;

	/* This request may change the names, so earlier answers are dropped. */
	if (a->kind != PROGRAMWIRE_LOOKUP && a->kind != PROGRAMWIRE_REST)
		forget_ahead(p);
	if (!w->busy) {
		wait_ns = PATIENT_NS;
		r = worker_send(w, a, fds, count);
		if (p->slow) {
			c->of = p;
			c->value = a->value;
			c->flags = a->flags;
			c->unclaimed_ns = 0;
		}
	}
	r = r ? VERDICT_LOST
	      : worker_wait(w, turns && !p->slow ? slice_ns : UINT64_MAX,
			    turns && p->slow ? wait_ns : UINT64_MAX, limit_s(p), &pool.answer,
			    &pool.names);
	if (r == VERDICT_LATER && turns && p->slow)
		return VERDICT_LATER;
	p->worked_ns += w->request_ns;
	if (w->blocked && p->class == PROGRAM_OF_OTHERS)
		blockers_note(&pool.blockers, p->uid, clock_mono_ns());
	if (p->slow)
		c->of = NULL;
	if (r == VERDICT_LATER && turns)
		return hand_over(c, p, a);
	if (r) {
		worker_drop(w);
		p->bytes = 0;
		return r;
	}
	if (pool.answer.head.verdict == -ENOMEM) {
		/* The worker's memory is full, also for other files. */
		worker_drop(w);
		return SYMFILE_TOO_LARGE;
	}
	if (p->slow && pool.answer.head.verdict == VERDICT_AGAIN) {
		c->of = p;
		c->kept_until_ns = clock_mono_ns() + KEPT_NS;
	}
	return pool.answer.head.verdict;
}

/* --- programs in workers --- */

/* Opens p in the current worker if it is not open there yet. */
static int open_there(struct program *p)
{
	struct worker *w = worker_of(p);
	struct programwire_ask a = { .kind = PROGRAMWIRE_OPEN,
				     .program = p->slot,
				     .value = p->dwarf_max,
				     .step = p->opened ? p->step + 1 : 0,
				     .owner = p->owner };
	int fds[PROGRAM_PARTS] = { p->fds[PROGRAM_MAIN] };
	size_t count = 1;

	/* A worker that ended while idle did not crash on this file. A worker near its limit of cpu
	 * time must not reach it during this request, or this file would be blamed. */
	if (w->socket >= 0 && !w->busy && (w->worked_ns >= pool.life_ns || worker_is_gone(w)))
		worker_drop(w);
	int r = w->socket >= 0 ? 0 : start(w);

	if (r)
		return r;
	if (p->worker == w->number)
		return 0;
	if (p->fds[PROGRAM_DEBUG] >= 0) {
		fds[count++] = p->fds[PROGRAM_DEBUG];
		a.flags |= PROGRAMWIRE_DEBUG | (p->unproven ? PROGRAMWIRE_UNPROVEN : 0);
	}
	if (p->fds[PROGRAM_SHARED] >= 0) {
		fds[count++] = p->fds[PROGRAM_SHARED];
		a.flags |= PROGRAMWIRE_SHARED;
	}
	if (p->no_v8)
		a.flags |= PROGRAMWIRE_NO_V8;
	p->worker = 0;
	r = exchange(p, &a, fds, count);
	if (!r) {
		p->worker = w->number;
		p->opened = true;
		note(p, &pool.answer);
	}
	return r;
}

/* Whether somebody else killed the worker while it read this program. The kernel does so if memory
 * is short, which is not the program's fault. Starts the next worker to find out. */
static bool was_killed(struct program *p)
{
	struct worker *w = worker_of(p);

	if (w->hung_up)
		(void)start(w);
	if (!w->hung_up || !w->killed)
		return false;
	p->kills++;
	return true;
}

/* Requests more heap for p, and drops the worker so that the next one gets it. VERDICT_LATER: more
 * heap may still come; -ENOMEM: there is no more. */
static int grow(struct program *p)
{
	if (!pool.more)
		return -ENOMEM;
	const uint64_t had = pool.heap;

	pool.heap = pool.more(pool.more_ctx, 2 * had);
	if (pool.heap < had + had / 8) {
		const uint64_t now_ns = clock_mono_ns();

		if (!p->grows_ns)
			p->grows_ns = now_ns;
		return now_ns - p->grows_ns < GROWS_NS ? VERDICT_LATER : -ENOMEM;
	}
	p->grows_ns = 0;
	/* libdw's own data takes nearly as much again as the sections. */
	p->dwarf_max = pool.heap / 5 * 3;
	worker_drop(worker_of(p));
	return 0;
}

/* Gives the DWARF up, and opens the program without it. Returns false if it already had none. */
static bool without_dwarf(struct program *p, bool *reason)
{
	if (!p->dwarf_max)
		return false;
	p->dwarf_max = 0;
	if (p->worker == worker_of(p)->number)
		close_there(worker_of(p), p);
	p->worker = 0;
	p->slow = false;
	*reason = true;
	return true;
}

bool workers_rests(const struct program *p)
{
	return pool.blockers.len && p->class == PROGRAM_OF_OTHERS &&
	       blockers_has(&pool.blockers, p->uid, clock_mono_ns());
}

int workers_ask(struct program *p, const struct programwire_ask *a)
{
	const bool turns = a && a->kind == PROGRAMWIRE_LOOKUP && pool.slice_ns;

	for (;;) {
		if (p->lost || workers_rests(p))
			return VERDICT_LOST;
		/* It did not fit even without DWARF, and would not now. */
		if (p->full_heap && pool.heap < p->full_heap + p->full_heap / 8)
			return -ENOMEM;
		if (p->slow && is_taken(workers_of(p), p, a))
			return VERDICT_LATER;
		if (turns && p->grows_ns && !p->too_large && grow(p) == VERDICT_LATER)
			return VERDICT_LATER;
		int r = open_there(p);

		if (!r && a)
			r = exchange(p, a, NULL, 0);
		if (r == VERDICT_LATER)
			return r;
		if (r == VERDICT_LOST) {
			if (was_killed(p) && p->kills <= 1)
				continue;
			if (without_dwarf(p, &p->dwarf_lost))
				continue;
			p->lost = true;
			return VERDICT_LOST;
		}
		if (r == SYMFILE_TOO_LARGE && worker_of(p)->socket < 0) {
			/* Other programs may have filled the worker; in the next worker this
			 * program is alone. */
			if (!p->was_filled) {
				p->was_filled = true;
				continue;
			}
			p->was_filled = false;
			r = grow(p);
			if (r == VERDICT_LATER && turns)
				return r;
			if (r == 0 || without_dwarf(p, &p->too_large))
				continue;
			p->full_heap = pool.heap;
			return -ENOMEM;
		}
		p->was_filled = false;
		if (p->worker && a && worker_of(p)->socket >= 0) {
			note(p, &pool.answer);
			if (pool.answer.head.flags & PROGRAMWIRE_TOO_LARGE && !p->too_large) {
				const int g = grow(p);

				if (g == 0)
					continue;
				if (g == VERDICT_LATER && turns)
					return g;
				p->too_large = true;
			}
		}
		return r;
	}
}

/* --- programs --- */

int workers_add(struct program *p)
{
	struct workers *c = workers_of(p);

	for (uint32_t i = 0; i < PROGRAMWIRE_PROGRAMS; i++) {
		if (c->programs[i])
			continue;
		c->programs[i] = p;
		p->slot = i;
		return 0;
	}
	return -EMFILE;
}

static void drop_untold(struct program *p)
{
	if (p->untold && p->telling_fd >= 0)
		close(p->telling_fd);
	p->untold = false;
}

void workers_close(struct program *p)
{
	struct workers *c = workers_of(p);

	if (c->of == p) {
		if (c->patient.busy)
			worker_drop(&c->patient);
		c->of = NULL;
	}
	if (p->worker == worker_of(p)->number)
		close_there(worker_of(p), p);
	drop_untold(p);
	c->programs[p->slot] = NULL;
	forget_ahead(p);
	for (enum program_part part = PROGRAM_MAIN; part < PROGRAM_PARTS; part++)
		close_part(p, part);
}

void workers_move(struct program *p, bool slow)
{
	if (p->worker == worker_of(p)->number)
		close_there(worker_of(p), p);
	p->slow = slow;
}

/* Returns 1: the file was the right one; 0; or VERDICT_LATER. Sets *fd to -1 if it was kept. */
static int tell(struct program *p, enum programwire_kind kind, int *fd)
{
	const struct programwire_ask a = { .kind = kind, .program = p->slot };
	struct worker *w = worker_of(p);
	/* The patient worker is reserved for a program that waits for a file. */
	int r = p->lost					      ? VERDICT_LOST
		: p->slow && is_taken(workers_of(p), p, NULL) ? VERDICT_LATER
		: w->busy				      ? VERDICT_LATER
							      : open_there(p);

	if (r == VERDICT_LATER)
		return r;
	if (r) {
		p->facts.want = PROGRAM_WANTS_NOTHING;
		return 0;
	}
	r = exchange(p, &a, fd, *fd >= 0);
	if (r == VERDICT_LOST || w->socket < 0) {
		p->facts.want = PROGRAM_WANTS_NOTHING;
		p->step = SOURCES_DONE;
		if (r == VERDICT_LOST && !was_killed(p) && !without_dwarf(p, &p->dwarf_lost))
			p->lost = true;
		return 0;
	}
	/* Keep the file for the next worker, if that has to open it again. */
	const bool debug = p->fds[PROGRAM_DEBUG] < 0 && pool.answer.head.flags & PROGRAMWIRE_DEBUG;
	const bool shared = p->fds[PROGRAM_SHARED] < 0 &&
			    pool.answer.head.flags & PROGRAMWIRE_SHARED;

	if (*fd >= 0 && (debug || shared)) {
		p->fds[debug ? PROGRAM_DEBUG : PROGRAM_SHARED] = *fd;
		*fd = -1;
	}
	note(p, &pool.answer);
	return r == PROGRAMWIRE_YES;
}

bool workers_tell(struct program *p, enum programwire_kind kind, int fd)
{
	const int r = tell(p, kind, &fd);

	drop_untold(p);
	if (r == VERDICT_LATER) {
		p->untold = true;
		p->telling = kind;
		p->telling_fd = fd;
		return false;
	}
	if (fd >= 0)
		close(fd);
	return r != 0;
}

bool workers_tell_again(struct program *p)
{
	if (p->untold && tell(p, p->telling, &p->telling_fd) != VERDICT_LATER)
		drop_untold(p);
	return !p->untold;
}

int workers_look_up(struct program *p, uint64_t value, uint32_t flags)
{
	struct programwire_ask a = { .kind = PROGRAMWIRE_LOOKUP,
				     .program = p->slot,
				     .value = value,
				     .flags = flags,
				     .owner = p->owner,
				     .expected_count = p->expected_count };

	if (!workers_tell_again(p))
		return VERDICT_LATER;
	memcpy(a.expected, p->expected, sizeof(a.expected));
	p->expected_count = 0;
	const int r = workers_ask(p, &a);

	if (r == VERDICT_LATER)
		return r;
	if (r == 0 || r == SYMFILE_NONE)
		keep_ahead(p, &pool.answer);
	p->again = r == VERDICT_AGAIN ? p->again + 1 : 0;
	if (p->again > MOST_AGAIN) {
		worker_drop(worker_of(p));
		(void)without_dwarf(p, &p->dwarf_lost);
		return SYMFILE_NONE;
	}
	if (r && r != VERDICT_AGAIN && r != -ENOMEM)
		return SYMFILE_NONE;
	if (r == VERDICT_AGAIN && p->facts.want == PROGRAM_WANTS_NOTHING)
		return SYMFILE_NONE;
	return r == 0 && !pool.names.count ? SYMFILE_NONE : r;
}

bool workers_is_open(const struct program *p)
{
	return p->worker == worker_of(p)->number;
}

bool workers_has(const struct program *p)
{
	return worker_of(p)->socket >= 0 && workers_is_open(p);
}

bool workers_is_busy(const struct program *p)
{
	return worker_of(p)->busy;
}

bool workers_is_taken(enum program_class class, const struct program *p)
{
	return is_taken(&pool.classes[class], p, NULL);
}

struct programwire_answer *workers_answer(void)
{
	return &pool.answer;
}

struct names *workers_names(void)
{
	return &pool.names;
}
