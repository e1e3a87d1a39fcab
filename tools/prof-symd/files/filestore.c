/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/files/filestore.h"

#include <errno.h>
#include <malloc.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/wire/peer/lastword.h"

void filestore_init(struct filestore *s, uint64_t budget, uint64_t dwarf_max,
		    int (*ask)(void *, const struct filestore_request *), void *ctx)
{
	*s = (struct filestore){
		.budget = budget, .dwarf_max = dwarf_max, .ask = ask, .ctx = ctx, .next_request = 1
	};
}

/* --- the list of open programs --- */

static void unlink_file(struct filestore *s, struct filestore_file *f)
{
	*(f->prev ? &f->prev->next : &s->newest) = f->next;
	*(f->next ? &f->next->prev : &s->oldest) = f->prev;
	f->prev = f->next = NULL;
}

static void link_newest(struct filestore *s, struct filestore_file *f)
{
	f->next = s->newest;
	*(s->newest ? &s->newest->prev : &s->oldest) = f;
	s->newest = f;
}

static void use(struct filestore *s, struct filestore_file *f, uint64_t now_ns)
{
	f->used_ns = now_ns;
	f->rests = FILESTORE_WORKS;
	unlink_file(s, f);
	link_newest(s, f);
}

static void close_program(struct filestore *s, struct filestore_file *f)
{
	if (!f->program)
		return;
	unlink_file(s, f);
	s->open_count--;
	s->bytes -= f->bytes;
	f->bytes = 0;

	const uint64_t former = lastword_begin(LASTWORD_FILE, f->file);

	program_free(f->program);
	lastword_back(former);
	f->program = NULL;
	f->rests = FILESTORE_WORKS;
}

static void charge(struct filestore *s, struct filestore_file *f)
{
	s->bytes -= f->bytes;
	f->bytes = program_bytes(f->program);
	s->bytes += f->bytes;
}

/* Calls without_hook once per file and reason. */
static void note_without_dwarf(struct filestore *s, struct filestore_file *f)
{
	const bool lost = !f->dwarf_lost && program_dwarf_lost(f->program);
	const bool large = !f->dwarf_too_large && program_dwarf_too_large(f->program);
	const unsigned kills = program_dwarf_kills(f->program);
	const bool killed = kills > f->dwarf_kills;

	if (killed)
		f->dwarf_kills = kills;
	f->dwarf_lost |= lost;
	f->dwarf_too_large |= large;
	s->dwarf_too_large += large;
	if ((lost || large || killed) && s->without_hook)
		s->without_hook(s->without_ctx, f);
}

/* Frees memory of a program. Asks a worker, so only once after each use. */
static bool rest(struct filestore *s, struct filestore_file *f, bool packed)
{
	const enum filestore_rest as = packed ? FILESTORE_RESTS_PACKED : FILESTORE_RESTS;

	if (f->state != FILESTORE_READY || f->rests >= as)
		return false;

	const int r = program_rest(f->program, packed);

	if (r != VERDICT_LATER)
		f->rests = as;
	if (r != VERDICT_FREED)
		return false;
	charge(s, f);
	return true;
}

/* Whether programs take so much memory that o must free some. Busy programs may exceed the budget
 * by half. Callers begin with the oldest program: if one is busy, all later ones are. */
static bool must_go(const struct filestore *s, const struct filestore_file *o)
{
	bool busy = s->now_ns - o->used_ns < FILESTORE_BUSY_NS;

	return s->bytes > (busy ? s->budget + s->budget / 2 : s->budget);
}

/* Frees memory until the budget is met. Frees what is fastest to rebuild first. */
static bool make_room(struct filestore *s, struct filestore_file *keep)
{
	bool freed = false;

	for (struct filestore_file *o = s->oldest; o && must_go(s, o); o = o->prev)
		freed |= rest(s, o, false);
	for (struct filestore_file *o = s->oldest; o && must_go(s, o); o = o->prev)
		freed |= o != keep && rest(s, o, true);
	for (struct filestore_file *o = s->oldest;
	     o && (must_go(s, o) || s->open_count > FILESTORE_OPEN);) {
		struct filestore_file *newer = o->prev;

		if (o != keep && o->state == FILESTORE_READY) {
			close_program(s, o);
			o->state = FILESTORE_CLOSED;
			s->evicted++;
			freed = true;
		}
		o = newer;
	}
	return freed;
}

void filestore_charge(struct filestore *s, struct filestore_file *f)
{
	if (!f->program)
		return;
	note_without_dwarf(s, f);
	f->slow = program_is_slow(f->program);
	charge(s, f);
	if (make_room(s, f))
		malloc_trim(0);
}

/* --- asking --- */

static void stop_asking(struct filestore *s, struct filestore_file *f)
{
	f->request = 0;
	for (unsigned i = 0; i < FILESTORE_IN_FLIGHT; i++)
		if (s->asked[i] == f)
			s->asked[i] = NULL;
}

static void stop_wanting(struct filestore *s, struct filestore_file *f)
{
	if (!f->wanted)
		return;
	for (unsigned i = 0; i < s->wanted_count; i++) {
		if (s->wanted[i] == f) {
			s->wanted[i] = s->wanted[--s->wanted_count];
			break;
		}
	}
	f->wanted = false;
}

/* Ends the requests for a file: all answers came, or were given up. */
static void settle(struct filestore *s, struct filestore_file *f, uint64_t now_ns)
{
	stop_asking(s, f);
	if (f->program) {
		f->state = FILESTORE_READY;
		use(s, f, now_ns);
	} else {
		f->state = FILESTORE_FAILED;
		f->failed_ns = now_ns;
		if (s->opened_hook)
			s->opened_hook(s->hook_ctx, f, NULL);
	}
}

/* Requests the program, or the next file that it wants. Repeats this until a request is open, no
 * file is wanted, or no request can be sent now. */
static void ask_next(struct filestore *s, struct filestore_file *f, uint64_t now_ns)
{
	while (f->state == FILESTORE_ASKED && !f->request) {
		struct filestore_request rq = { .id = s->next_request, .file = f };
		int r;

		if (f->program) {
			rq.want = program_wants(f->program, &rq.build_id, &rq.name);
			if (rq.want == PROGRAM_WANTS_NOTHING || s->bare) {
				settle(s, f, now_ns);
				return;
			}
			if (rq.want == PROGRAM_WANTS_LATER)
				return; /* filestore_tick tries again */
			rq.place = program_refused(f->program) ? f->place + 1 : 0;
		}
		s->next_request++;
		f->request = rq.id;
		r = s->ask(s->ctx, &rq);
		if (r == 0)
			continue; /* sent, and possibly already answered */
		f->request = 0;
		if (r == -EAGAIN)
			return; /* filestore_tick tries again */
		if (f->program)
			program_offer(f->program, -1);
		else
			settle(s, f, now_ns);
	}
}

/* Returns a free element of s->asked for this owner; -1: none. */
static int place_for(const struct filestore *s, uint64_t owner)
{
	unsigned unused = 0, own = 0;
	int place = -1;

	for (unsigned i = 0; i < FILESTORE_IN_FLIGHT; i++) {
		if (!s->asked[i]) {
			unused++;
			place = (int)i;
		} else {
			own += s->asked[i]->asker == owner;
		}
	}
	return own < unused ? place : -1;
}

static bool start_asking(struct filestore *s, struct filestore_file *f, uint64_t now_ns)
{
	const int place = place_for(s, f->owner);

	if (place < 0)
		return false;
	stop_wanting(s, f);
	s->asked[place] = f;
	f->asker = f->owner;
	f->state = FILESTORE_ASKED;
	f->asked_ns = f->answered_ns = now_ns;
	f->timed_out = f->late = false;
	ask_next(s, f, now_ns);
	return true;
}

int filestore_complete(struct filestore *s, struct filestore_file *f, uint64_t now_ns)
{
	if (f->state == FILESTORE_READY && !start_asking(s, f, now_ns))
		return FILESTORE_WAIT;
	return f->state == FILESTORE_READY ? 0 : FILESTORE_WAIT;
}

static void ask_wanted(struct filestore *s, uint64_t now_ns)
{
	for (unsigned i = 0; i < s->wanted_count;)
		i += !start_asking(s, s->wanted[i], now_ns); /* start_asking removes the file from
							      * the list */
}

void filestore_want(struct filestore *s, struct filestore_file *f, uint64_t now_ns)
{
	if (f->state != FILESTORE_CLOSED || f->wanted || start_asking(s, f, now_ns) ||
	    s->wanted_count == FILESTORE_WANTED)
		return;
	f->wanted = true;
	s->wanted[s->wanted_count++] = f;
}

static enum program_class class_of(const struct filestore_file *f)
{
	return f->of_root ? PROGRAM_OF_ROOT : PROGRAM_OF_OTHERS;
}

bool filestore_must_wait(const struct filestore_file *f)
{
	return f->slow && program_must_wait(class_of(f), f->program);
}

void filestore_try_patiently(struct filestore_file *f)
{
	if (f->tried || f->slow || f->of_root)
		return;
	f->slow = true;
	if (f->program)
		program_set_slow(f->program, true);
}

void filestore_took(struct filestore_file *f, uint64_t worked_ns, uint64_t slow_ns)
{
	if (!f->tried && f->program)
		program_set_slow(f->program, worked_ns > slow_ns);
	f->tried = true;
}

bool filestore_settled(const struct filestore_file *f)
{
	return f->state == FILESTORE_READY || f->state == FILESTORE_FAILED;
}

bool filestore_is_open(const struct filestore_file *f)
{
	return f->state == FILESTORE_READY;
}

/* Returns when a requested file counts as missing. */
static uint64_t overdue_ns(const struct filestore_file *f)
{
	return numbers_smaller(f->answered_ns + FILESTORE_WAIT_NS,
			       f->asked_ns + FILESTORE_WAIT_ALL_NS);
}

/* Returns when filestore_tick has something to do for a requested file. */
static uint64_t next_ns(const struct filestore *s, const struct filestore_file *f)
{
	return f->program && program_offer_waits(f->program) ? s->now_ns + FILESTORE_TURN_NS
							     : overdue_ns(f);
}

static void give_up(struct filestore *s, struct filestore_file *f, uint64_t now_ns)
{
	s->timed_out++;
	f->timed_out = f->late = true;
	f->failed_ns = now_ns;
	if (f->program)
		program_give_up(f->program);
	settle(s, f, now_ns);
}

int filestore_get(struct filestore *s, struct filestore_file *f, uint64_t now_ns,
		  struct program **ret)
{
	s->now_ns = now_ns;
	if (filestore_settled(f) && f->timed_out && now_ns - f->failed_ns >= FILESTORE_RETRY_NS) {
		/* Only the debug file may be missing: open the program again. */
		close_program(s, f);
		f->state = FILESTORE_CLOSED;
	}
	if (f->state == FILESTORE_CLOSED && !start_asking(s, f, now_ns))
		return FILESTORE_WAIT; /* other requests are open, and each has a deadline */
	if (f->state == FILESTORE_ASKED)
		return FILESTORE_WAIT; /* filestore_tick gives it up */
	*ret = f->program;
	if (f->program)
		use(s, f, now_ns);
	return 0;
}

/* Takes an open file: the program itself, or a file that it wants. */
static void take_file(struct filestore *s, struct filestore_file *f, int fd, uint64_t now_ns)
{
	const uint64_t former = lastword_begin(LASTWORD_FILE, f->file);

	if (f->program) {
		program_offer(f->program, fd);
		charge(s, f);
		lastword_back(former);
		return;
	}

	bool slow = f->slow;
	const int r = fd < 0 ? -EBADF
			     : program_open(fd, class_of(f),
					    f->dwarf_lost || f->dwarf_too_large ? 0 : s->dwarf_max,
					    &f->program);

	if (r == 0) {
		s->opened++;
		s->open_count++;
		link_newest(s, f);
		filestore_charge(s, f);
		if (s->opened_hook)
			s->opened_hook(s->hook_ctx, f, f->program);
		/* Otherwise the large files of many users would keep the prompt worker, and all
		 * who wait for it, for a slice each. */
		slow |= !f->of_root && !f->tried && program_is_large(f->program);
		f->slow = slow;
		program_set_slow(f->program, slow);
	} else {
		f->program = NULL;
		/* Request the file again if there was no memory for it, or if the failure may not
		 * be its fault. */
		f->timed_out = r == -ENOMEM || r == VERDICT_KILLED || r == VERDICT_LATER;
		const bool said = f->died || f->killed;

		f->died = r == VERDICT_DIED;
		f->killed = r == VERDICT_KILLED;
		if ((f->died || f->killed) && !said && s->without_hook)
			s->without_hook(s->without_ctx, f);
		settle(s, f, now_ns);
	}
	lastword_back(former);
}

/* Returns the file of a request; NULL: the request was given up. */
static struct filestore_file *file_of(const struct filestore *s, uint64_t id)
{
	for (unsigned i = 0; i < FILESTORE_IN_FLIGHT; i++)
		if (s->asked[i] && s->asked[i]->request == id)
			return s->asked[i];
	return NULL;
}

void filestore_place(struct filestore *s, uint64_t id, uint64_t place)
{
	struct filestore_file *f = file_of(s, id);

	if (f)
		f->place = place;
}

void filestore_answer(struct filestore *s, uint64_t id, int fd, uint64_t now_ns)
{
	struct filestore_file *f = file_of(s, id);

	s->now_ns = now_ns;
	if (!f) {
		if (fd >= 0)
			close(fd);
		return;
	}
	f->request = 0;
	f->answered_ns = now_ns;
	take_file(s, f, fd, now_ns);
	ask_next(s, f, now_ns);
	ask_wanted(s, now_ns);
}

void filestore_worked(struct filestore *s, uint64_t ns, uint64_t now_ns)
{
	for (unsigned i = 0; i < FILESTORE_IN_FLIGHT; i++) {
		struct filestore_file *f = s->asked[i];

		if (!f)
			continue;
		f->asked_ns = numbers_smaller(f->asked_ns + ns, now_ns);
		f->answered_ns = numbers_smaller(f->answered_ns + ns, now_ns);
	}
}

void filestore_tick(struct filestore *s, uint64_t now_ns)
{
	bool freed = false;

	s->now_ns = now_ns;
	for (unsigned i = 0; i < FILESTORE_IN_FLIGHT; i++) {
		struct filestore_file *f = s->asked[i];

		if (f && now_ns >= overdue_ns(f))
			give_up(s, f, now_ns);
		else if (f && !f->request)
			ask_next(s, f, now_ns);
	}
	/* The list is in the order of last use, so stop at the first recent one. */
	for (struct filestore_file *f = s->oldest; f && now_ns - f->used_ns >= FILESTORE_REST_NS;) {
		struct filestore_file *newer = f->prev;

		if (f->state == FILESTORE_READY && now_ns - f->used_ns >= FILESTORE_IDLE_NS) {
			close_program(s, f);
			f->state = FILESTORE_CLOSED;
			freed = true;
		} else {
			freed |= rest(s, f, false);
		}
		f = newer;
	}
	freed |= make_room(s, NULL);
	if (freed)
		malloc_trim(0);
	ask_wanted(s, now_ns);
}

void filestore_relieve(struct filestore *s)
{
	for (struct filestore_file *f = s->oldest; f;) {
		struct filestore_file *newer = f->prev;

		if (f->state == FILESTORE_READY) {
			close_program(s, f);
			f->state = FILESTORE_CLOSED;
		}
		f = newer;
	}
	malloc_trim(0);
}

uint64_t filestore_deadline(const struct filestore *s)
{
	uint64_t first = 0;

	for (unsigned i = 0; i < FILESTORE_IN_FLIGHT; i++) {
		const uint64_t at = s->asked[i] ? next_ns(s, s->asked[i]) : 0;

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

void filestore_drop(struct filestore *s, struct filestore_file *f)
{
	stop_asking(s, f);
	stop_wanting(s, f);
	close_program(s, f);
	f->state = FILESTORE_CLOSED;
}
