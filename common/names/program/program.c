/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/program.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/names/program/fileworker.h"
#include "common/names/program/sources.h"
#include "common/names/program/worker.h"

/* A worker ends itself when a request has taken FILEWORKER_CPU_S, with a second more at the most.
 * This one more is for a worker that does not want to. By hand, larger files are allowed, with a
 * second more for each 16 MiB. */
#define LIMIT_S (FILEWORKER_CPU_S + 2)
#define SMALL_MAX (48ull << 20)
#define GROWS_NS 700000000ull /* prof-bpf reads what is wanted some ten times a second */
#define MOST_AGAIN 64	      /* wants of one lookup; an honest worker has fewer */
#define SLICE_OF_ROOT_NS 500000000ull
#define PATIENT_NS 1000000ull	   /* how long an answer of the patient worker is waited for */
#define KEPT_NS 2500000000ull	   /* how long that worker is kept for who waits for a file */
#define UNCLAIMED_NS 1000000000ull /* after which an answer that nobody takes is thrown away */

enum lost_verdict { LOST = WORKER_LOST }; /* the worker crashed, or took too long */
_Static_assert(PROGRAM_LATER == (int)WORKER_LATER, "");

enum part { MAIN, DEBUG, SHARED, PARTS };

struct program {
	struct sources *sources; /* owned; set if the files are parsed in this process */
	enum program_class class;
	int fds[PARTS];		    /* -1: it has none */
	uint64_t dwarf_max, worker; /* worker: the number of the one in which it is open */
	unsigned kills;
	uint32_t slot;
	uint64_t owner;
	uint64_t worked_ns; /* of the workers, since program_worked_ns */
	bool slow;	    /* for the patient worker */
	uint64_t grows_ns;  /* since when it asks for more heap; 0: it does not */
	bool dwarf_lost, too_large;
	bool lost; /* it has no names at all */
	bool opened, unproven, cut;
	uint32_t step;
	unsigned again; /* wants of the present lookup */
	size_t bytes;
	struct programwire_facts facts;
	uint64_t expected[PROGRAMWIRE_EXPECTED]; /* for the next lookup */
	uint32_t expected_count;
	uint8_t *ahead; /* answers to expected lookups (programwire_find); NULL: none */
	size_t ahead_len;
};
_Static_assert(PROGRAM_EXPECTED == PROGRAMWIRE_EXPECTED, "");

/* The workers of a class. */
struct crew {
	struct worker prompt, patient;
	struct program *programs[PROGRAMWIRE_PROGRAMS]; /* by slot, in both */
	/* The program whose lookup the patient one has, or for which it is kept; NULL: none. */
	const struct program *of;
	uint64_t value; /* of the lookup */
	uint32_t flags;
	uint64_t kept_until_ns, unclaimed_ns;
};

static struct {
	uint64_t life_ns, heap, beside; /* of the next workers */
	uint64_t slice_ns;		/* of program_take_turns; 0: all answers are waited for */
	uint64_t (*more)(void *ctx, uint64_t heap);
	void *more_ctx;
	struct crew crews[PROGRAM_CLASSES];
	struct programwire_answer answer;
	struct names names;
} host = { .crews = { { .prompt = { .kind = FILEKEEPER_PROGRAMS_OF_ROOT, .socket = -1 },
			.patient = { .kind = FILEKEEPER_SECOND_OF_ROOT, .socket = -1 } },
		      { .prompt = { .kind = FILEKEEPER_PROGRAMS_OF_OTHERS, .socket = -1 },
			.patient = { .kind = FILEKEEPER_SECOND_OF_OTHERS, .socket = -1 } } } };

void program_use_keeper(int control, unsigned life_s, uint64_t heap, uint64_t beside)
{
	filekeeper_use(control);
	host.beside = beside;
	host.life_ns = life_s * 1000000000ull;
	host.heap = heap;
}

bool program_keeper_gone(void)
{
	return filekeeper_gone();
}

void program_take_turns(uint64_t slice_ns)
{
	host.slice_ns = slice_ns;
}

void program_until(uint64_t until_ns)
{
	worker_until(until_ns);
}

void program_grow_with(uint64_t (*more)(void *ctx, uint64_t heap), void *ctx)
{
	host.more = more;
	host.more_ctx = ctx;
}

void program_set_heap(uint64_t heap)
{
	host.heap = heap;
}

/* --- the workers --- */

static struct crew *crew_of(const struct program *p)
{
	return &host.crews[p->class];
}

static struct worker *worker_of(const struct program *p)
{
	return p->slow ? &crew_of(p)->patient : &crew_of(p)->prompt;
}

static int start(struct worker *w)
{
	return worker_start(w, host.heap + host.beside);
}

static unsigned limit_s(const struct program *p)
{
	const uint64_t max = p->dwarf_max;

	return LIMIT_S + (unsigned)(max > SMALL_MAX ? (max - SMALL_MAX) >> 24 : 0);
}

static void close_part(struct program *p, enum part part)
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

static struct span ahead_of(const struct program *p)
{
	return (struct span){ .data = p->ahead, .len = p->ahead_len };
}

/* Keeps the answers that came ahead. Without memory they are asked for. */
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

/* Takes over what an answer says of the program. */
static void note(struct program *p, const struct programwire_answer *a)
{
	const uint64_t most = 4 * p->dwarf_max + (256u << 20);

	/* Bounded, since it is charged to the budget of all programs. */
	p->bytes = (size_t)(a->head.bytes < most ? a->head.bytes : most);
	if (!p->worker)
		return;
	p->unproven = a->head.flags & PROGRAMWIRE_UNPROVEN;
	p->step = a->head.step;
	p->cut = a->head.flags & PROGRAMWIRE_CUT;
	p->dwarf_lost |= (a->head.flags & PROGRAMWIRE_LOST) != 0;
	if (!(a->head.flags & PROGRAMWIRE_DEBUG))
		close_part(p, DEBUG);
	if (!(a->head.flags & PROGRAMWIRE_SHARED))
		close_part(p, SHARED);
	if (a->head.flags & PROGRAMWIRE_FACTS)
		p->facts = a->facts;
}

/* --- the patient worker --- */

/* Whether the patient worker works for another program or request. a: NULL if p only has to wait
 * for other programs. An answer that nobody takes does not keep it for ever. */
static bool is_taken(struct crew *c, const struct program *p, const struct programwire_ask *a)
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
	r = worker_wait(w, UINT64_MAX, 0, LIMIT_S, &host.answer, &host.names);
	if (r == WORKER_LATER)
		return true;
	if (r == WORKER_LOST)
		worker_drop(w);
	c->of = NULL;
	return false;
}

/* Has the worker close p. */
static void close_there(struct worker *w, struct program *p)
{
	const struct programwire_ask a = { .kind = PROGRAMWIRE_CLOSE, .program = p->slot };

	p->worker = 0;
	/* One that does not take it is replaced before its next request. */
	if (w->socket >= 0 && worker_send(w, &a, NULL, 0))
		w->worked_ns = UINT64_MAX / 2;
}

/* The prompt worker is at a request that takes long. It becomes the patient one, if that has
 * nothing to do; else it is replaced, and p waits for the patient one. */
static int hand_over(struct crew *c, struct program *p, const struct programwire_ask *a)
{
	p->slow = true;
	if (is_taken(c, p, a) || c->patient.busy) {
		p->worker = 0;
		(void)start(&c->prompt);
		return PROGRAM_LATER;
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
	return PROGRAM_LATER;
}

/* Sends a request, or goes on with it, and returns the verdict of its answer. PROGRAM_LATER: it is
 * still to come. After LOST there is no worker. */
static int exchange(struct program *p, const struct programwire_ask *a, const int *fds,
		    size_t count)
{
	struct crew *c = crew_of(p);
	struct worker *w = worker_of(p);
	const bool turns = a->kind == PROGRAMWIRE_LOOKUP && host.slice_ns;
	/* Files of root are no attack. */
	const uint64_t slice_ns = p->class == PROGRAM_OF_ROOT ? SLICE_OF_ROOT_NS : host.slice_ns;
	uint64_t wait_ns = 0;
	int r = 0;

	/* What it learns may change the names. */
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
	r = r ? LOST
	      : worker_wait(w, turns && !p->slow ? slice_ns : UINT64_MAX,
			    turns && p->slow ? wait_ns : UINT64_MAX, limit_s(p), &host.answer,
			    &host.names);
	if (r == WORKER_LATER && turns && p->slow)
		return PROGRAM_LATER;
	p->worked_ns += w->request_ns;
	if (p->slow)
		c->of = NULL;
	if (r == WORKER_LATER && turns)
		return hand_over(c, p, a);
	if (r) {
		worker_drop(w);
		p->bytes = 0;
		return r;
	}
	if (host.answer.head.verdict == -ENOMEM) {
		/* The worker is full, also for other files. */
		worker_drop(w);
		return SYMFILE_TOO_LARGE;
	}
	if (p->slow && host.answer.head.verdict == PROGRAM_AGAIN) {
		c->of = p;
		c->kept_until_ns = clock_mono_ns() + KEPT_NS;
	}
	return host.answer.head.verdict;
}

/* --- programs in workers --- */

/* Opens p in the present worker if it is not open there yet. */
static int open_there(struct program *p)
{
	struct worker *w = worker_of(p);
	struct programwire_ask a = { .kind = PROGRAMWIRE_OPEN,
				     .program = p->slot,
				     .value = p->dwarf_max,
				     .step = p->opened ? p->step + 1 : 0,
				     .owner = p->owner };
	int fds[PARTS] = { p->fds[MAIN] };
	size_t count = 1;

	/* A worker that ended while idle did not die of this file. A worker near its limit of cpu
	 * time must not reach it during this request, or this file would be blamed. */
	if (w->socket >= 0 && !w->busy && (w->worked_ns >= host.life_ns || worker_is_gone(w)))
		worker_drop(w);
	int r = w->socket >= 0 ? 0 : start(w);

	if (r)
		return r;
	if (p->worker == w->number)
		return 0;
	if (p->fds[DEBUG] >= 0) {
		fds[count++] = p->fds[DEBUG];
		a.flags |= PROGRAMWIRE_DEBUG | (p->unproven ? PROGRAMWIRE_UNPROVEN : 0);
	}
	if (p->fds[SHARED] >= 0) {
		fds[count++] = p->fds[SHARED];
		a.flags |= PROGRAMWIRE_SHARED;
	}
	p->worker = 0;
	r = exchange(p, &a, fds, count);
	if (!r) {
		p->worker = w->number;
		p->opened = true;
		note(p, &host.answer);
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

/* Requests more heap for p, and drops the worker so that the next one gets it. PROGRAM_LATER: it
 * may still come; -ENOMEM: there is no more. */
static int grow(struct program *p)
{
	if (!host.more)
		return -ENOMEM;
	const uint64_t had = host.heap;

	host.heap = host.more(host.more_ctx, 2 * had);
	if (host.heap < had + had / 8) {
		const uint64_t now_ns = clock_mono_ns();

		if (!p->grows_ns)
			p->grows_ns = now_ns;
		return now_ns - p->grows_ns < GROWS_NS ? PROGRAM_LATER : -ENOMEM;
	}
	p->grows_ns = 0;
	/* libdw's own data takes nearly as much again as the sections. */
	p->dwarf_max = host.heap / 5 * 3;
	worker_drop(worker_of(p));
	return 0;
}

/* Gives the DWARF up, and opens the program without it. False: it had none any more. */
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

/* Opens p, and sends request a unless it is NULL. Tries again in a new worker if that may help. The
 * answer is in host. A verdict of sources.h; -ENOMEM; LOST: it has no names. */
static int ask(struct program *p, const struct programwire_ask *a)
{
	const bool turns = a && a->kind == PROGRAMWIRE_LOOKUP && host.slice_ns;

	for (bool was_filled = false;;) {
		if (p->lost)
			return LOST;
		if (p->slow && is_taken(crew_of(p), p, a))
			return PROGRAM_LATER;
		if (turns && p->grows_ns && !p->too_large && grow(p) == PROGRAM_LATER)
			return PROGRAM_LATER;
		int r = open_there(p);

		if (!r && a)
			r = exchange(p, a, NULL, 0);
		if (r == PROGRAM_LATER)
			return r;
		if (r == LOST) {
			if (was_killed(p) && p->kills <= 1)
				continue;
			if (without_dwarf(p, &p->dwarf_lost))
				continue;
			p->lost = true;
			return LOST;
		}
		if (r == SYMFILE_TOO_LARGE && worker_of(p)->socket < 0) {
			/* Others may have filled it; in the next worker this program is alone. */
			if (!was_filled) {
				was_filled = true;
				continue;
			}
			was_filled = false;
			r = grow(p);
			if (r == PROGRAM_LATER && turns)
				return r;
			if (r == 0 || without_dwarf(p, &p->too_large))
				continue;
			return -ENOMEM;
		}
		if (p->worker && a && worker_of(p)->socket >= 0) {
			note(p, &host.answer);
			if (host.answer.head.flags & PROGRAMWIRE_TOO_LARGE && !p->too_large) {
				const int g = grow(p);

				if (g == 0)
					continue;
				if (g == PROGRAM_LATER && turns)
					return g;
				p->too_large = true;
			}
		}
		return r;
	}
}

/* --- programs --- */

static int new_slot(struct program *p)
{
	struct crew *c = crew_of(p);

	for (uint32_t i = 0; i < PROGRAMWIRE_PROGRAMS; i++) {
		if (c->programs[i])
			continue;
		c->programs[i] = p;
		p->slot = i;
		return 0;
	}
	return -EMFILE;
}

int program_open(int fd, enum program_class class, uint64_t dwarf_max, struct program **ret)
{
	struct program *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	p->class = class;
	p->dwarf_max = dwarf_max;
	p->fds[MAIN] = p->fds[DEBUG] = p->fds[SHARED] = -1;
	if (!filekeeper_in_use()) {
		r = sources_open(fd, dwarf_max, &p->sources);
		if (r)
			free(p);
		else
			*ret = p;
		return r;
	}
	p->fds[MAIN] = fd;
	r = new_slot(p);
	if (r) {
		close(fd);
		free(p);
		return r;
	}
	r = ask(p, NULL);
	if (r == LOST)
		r = p->kills > 1 ? PROGRAM_KILLED : PROGRAM_DIED;
	if (r) {
		program_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void program_free(struct program *p)
{
	if (!p)
		return;
	if (p->sources) {
		sources_free(p->sources);
	} else {
		struct crew *c = crew_of(p);

		if (c->of == p) {
			if (c->patient.busy)
				worker_drop(&c->patient);
			c->of = NULL;
		}
		if (p->worker == worker_of(p)->number)
			close_there(worker_of(p), p);
		c->programs[p->slot] = NULL;
		forget_ahead(p);
		for (enum part part = MAIN; part < PARTS; part++)
			close_part(p, part);
	}
	free(p);
}

enum program_want program_wants(struct program *p, struct span *ret_build_id, const char **ret_name)
{
	const struct programwire_facts *f = &p->facts;

	if (p->sources)
		return sources_wants(p->sources, ret_build_id, ret_name);
	*ret_build_id = (struct span){ .data = f->id, .len = f->id_len };
	*ret_name = f->name_len ? f->name : NULL;
	if (p->lost)
		return PROGRAM_WANTS_NOTHING;
	/* Both ends agree on what comes with each want; a worker that was taken over may not. */
	switch ((enum program_want)f->want) {
	case PROGRAM_WANTS_BUILD_ID:
		return f->id_len >= 2 ? PROGRAM_WANTS_BUILD_ID : PROGRAM_WANTS_NOTHING;
	case PROGRAM_WANTS_NAME:
		return f->name_len ? PROGRAM_WANTS_NAME : PROGRAM_WANTS_NOTHING;
	case PROGRAM_WANTS_ALT:
		return f->id_len >= 2 && f->name_len ? PROGRAM_WANTS_ALT : PROGRAM_WANTS_NOTHING;
	case PROGRAM_WANTS_PACKAGE:
		return PROGRAM_WANTS_PACKAGE;
	case PROGRAM_WANTS_NOTHING:
		break;
	}
	return PROGRAM_WANTS_NOTHING;
}

/* Sends an answer to a want, with *fd, which is set to -1 if it was kept. */
static bool tell_worker(struct program *p, enum programwire_kind kind, int *fd)
{
	const struct programwire_ask a = { .kind = kind, .program = p->slot };
	struct worker *w = worker_of(p);
	/* The patient worker is kept for who waits for a file. */
	int r = p->lost					   ? LOST
		: p->slow && is_taken(crew_of(p), p, NULL) ? PROGRAM_LATER
		: w->busy				   ? PROGRAM_LATER
							   : open_there(p);

	if (r) {
		p->facts.want = PROGRAM_WANTS_NOTHING;
		return false;
	}
	r = exchange(p, &a, fd, *fd >= 0);
	if (r == LOST || w->socket < 0) {
		p->facts.want = PROGRAM_WANTS_NOTHING;
		p->step = SOURCES_DONE;
		if (r == LOST && !was_killed(p) && !without_dwarf(p, &p->dwarf_lost))
			p->lost = true;
		return false;
	}
	/* The file is kept for the next worker, if it is one that is opened again there. */
	const bool debug = p->fds[DEBUG] < 0 && host.answer.head.flags & PROGRAMWIRE_DEBUG;
	const bool shared = p->fds[SHARED] < 0 && host.answer.head.flags & PROGRAMWIRE_SHARED;

	if (*fd >= 0 && (debug || shared)) {
		p->fds[debug ? DEBUG : SHARED] = *fd;
		*fd = -1;
	}
	note(p, &host.answer);
	return r == 1;
}

bool program_offer(struct program *p, int fd)
{
	if (p->sources)
		return sources_offer(p->sources, fd);
	const bool fits = tell_worker(p, PROGRAMWIRE_OFFER, &fd);

	if (fd >= 0)
		close(fd);
	return fits;
}

unsigned program_refused(const struct program *p)
{
	return p->sources ? sources_refused(p->sources) : p->facts.refused;
}

void program_give_up(struct program *p)
{
	int none = -1;

	if (p->sources)
		sources_give_up(p->sources);
	else
		(void)tell_worker(p, PROGRAMWIRE_GIVE_UP, &none);
}

void program_charge(struct program *p, uint64_t owner)
{
	p->owner = owner;
	if (p->sources)
		sources_charge(p->sources, owner);
}

int program_describe(struct program *p, struct runtime_build *ret)
{
	const struct programwire_ask a = { .kind = PROGRAMWIRE_DESCRIBE, .program = p->slot };

	if (p->sources)
		return sources_describe(p->sources, ret);
	const int r = ask(p, &a);

	if (r == 0 && host.answer.head.flags & PROGRAMWIRE_BUILD) {
		*ret = host.answer.build;
		return 0;
	}
	return r == -ENOMEM ? r : RUNTIME_NOT_MINE;
}

bool program_is_cut(const struct program *p)
{
	return p->sources ? sources_is_cut(p->sources) : p->cut;
}

struct span program_build_id(const struct program *p)
{
	return p->sources
		       ? sources_build_id(p->sources)
		       : (struct span){ .data = p->facts.build_id, .len = p->facts.build_id_len };
}

/* A lookup. The names are in host. */
static int look_up(struct program *p, uint64_t value, uint32_t flags)
{
	struct programwire_ask a = { .kind = PROGRAMWIRE_LOOKUP,
				     .program = p->slot,
				     .value = value,
				     .flags = flags,
				     .owner = p->owner,
				     .expected_count = p->expected_count };

	memcpy(a.expected, p->expected, sizeof(a.expected));
	p->expected_count = 0;
	const int r = ask(p, &a);

	if (r == PROGRAM_LATER)
		return r;
	if (r == 0 || r == SYMFILE_NONE)
		keep_ahead(p, &host.answer);
	p->again = r == PROGRAM_AGAIN ? p->again + 1 : 0;
	if (p->again > MOST_AGAIN) {
		worker_drop(worker_of(p));
		(void)without_dwarf(p, &p->dwarf_lost);
		return SYMFILE_NONE;
	}
	if (r && r != PROGRAM_AGAIN && r != -ENOMEM)
		return SYMFILE_NONE;
	if (r == PROGRAM_AGAIN && p->facts.want == PROGRAM_WANTS_NOTHING)
		return SYMFILE_NONE;
	return r == 0 && !host.names.count ? SYMFILE_NONE : r;
}

/* Copies only what is there: the struct is large. */
static void copy_names(struct names *ret)
{
	const ptrdiff_t by = ret->text - host.names.text;

	names_reset(ret);
	memcpy(ret->text, host.names.text, host.names.used);
	ret->used = host.names.used;
	ret->count = host.names.count;
	for (unsigned i = 0; i < ret->count; i++) {
		struct call *c = &ret->calls[i];

		*c = host.names.calls[i];
		c->name.data = c->name.len ? c->name.data + by : NULL;
		c->system_name.data = c->system_name.len ? c->system_name.data + by : NULL;
		c->source.data = c->source.len ? c->source.data + by : NULL;
	}
}

int program_lookup(struct program *p, uint64_t address, struct names *ret)
{
	if (p->sources)
		return sources_lookup(p->sources, address, ret);
	const int r = look_up(p, address, 0);

	names_reset(ret);
	if (r == 0)
		copy_names(ret);
	return r;
}

int program_address(struct program *p, uint64_t offset, uint64_t *ret)
{
	struct names none;
	uint64_t start;

	if (p->sources)
		return sources_address(p->sources, offset, ret);
	(void)program_find(p, offset, &none, ret, &start);
	return *ret == UINT64_MAX ? SYMFILE_NONE : 0;
}

static int find_here(struct program *p, uint64_t offset, struct names *ret, uint64_t *ret_address,
		     uint64_t *ret_start)
{
	int r = sources_address(p->sources, offset, ret_address);

	if (r) {
		*ret_address = UINT64_MAX;
		return r;
	}
	r = sources_lookup(p->sources, *ret_address, ret);
	if (r == SYMFILE_NONE || (r == 0 && !names_known(ret))) {
		const int e = sources_start(p->sources, *ret_address, ret_start);

		r = e == -ENOMEM ? e : r;
	}
	return r;
}

int program_find(struct program *p, uint64_t offset, struct names *ret, uint64_t *ret_address,
		 uint64_t *ret_start)
{
	*ret_address = UINT64_MAX;
	*ret_start = 0;
	names_reset(ret);
	if (p->sources)
		return find_here(p, offset, ret, ret_address, ret_start);
	int r;

	if (p->ahead && programwire_find(ahead_of(p), offset, &host.answer, &host.names)) {
		r = host.answer.head.verdict || !host.names.count ? SYMFILE_NONE : 0;
	} else {
		host.answer.head = (struct programwire_head){ .address = UINT64_MAX };
		r = look_up(p, offset, PROGRAMWIRE_OFFSET);
	}
	*ret_address = host.answer.head.address;
	*ret_start = host.answer.head.start;
	if (r == 0)
		copy_names(ret);
	return r;
}

void program_expect(struct program *p, const uint64_t *offsets, unsigned count)
{
	p->expected_count = count < PROGRAMWIRE_EXPECTED ? count : PROGRAMWIRE_EXPECTED;
	memcpy(p->expected, offsets, p->expected_count * sizeof(*offsets));
}

bool program_has(const struct program *p, uint64_t offset)
{
	struct span more = ahead_of(p), answer;
	struct programwire_more m;

	while (span_read(&more, &m, sizeof(m)) && span_take(&more, m.size, &answer))
		if (m.offset == offset)
			return true;
	return false;
}

bool program_is_slow(const struct program *p)
{
	return p->slow;
}

void program_set_slow(struct program *p, bool slow)
{
	if (p->sources || p->slow == slow)
		return;
	if (p->worker == worker_of(p)->number)
		close_there(worker_of(p), p);
	p->slow = slow;
}

bool program_must_wait(enum program_class class, const struct program *p)
{
	return is_taken(&host.crews[class], p, NULL);
}

uint64_t program_worked_ns(struct program *p)
{
	const uint64_t worked_ns = p->worked_ns;

	p->worked_ns = 0;
	return worked_ns;
}

bool program_dwarf_too_large(const struct program *p)
{
	return p->sources ? sources_dwarf_too_large(p->sources) : p->too_large;
}

bool program_dwarf_lost(const struct program *p)
{
	return p->sources ? sources_dwarf_lost(p->sources) : p->dwarf_lost || p->lost;
}

unsigned program_dwarf_kills(const struct program *p)
{
	return p->kills;
}

int program_rest(struct program *p, bool packed)
{
	const struct programwire_ask a = { .kind = PROGRAMWIRE_REST,
					   .program = p->slot,
					   .value = packed };

	if (p->sources)
		return sources_rest(p->sources, packed);
	if (worker_of(p)->socket < 0 || p->worker != worker_of(p)->number)
		return 0;
	if (worker_of(p)->busy)
		return PROGRAM_LATER;
	const int r = ask(p, &a);

	return r == 1 || r == PROGRAM_LATER ? r : 0;
}

size_t program_bytes(const struct program *p)
{
	return sizeof(*p) + (p->sources				 ? sources_bytes(p->sources)
			     : p->worker == worker_of(p)->number ? p->bytes
								 : 0);
}
