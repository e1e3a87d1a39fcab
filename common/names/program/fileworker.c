/* SPDX-License-Identifier: Apache-2.0 */
/* If libdw is taken over, the attacker can use only the system calls in the list below. So the
 * reason for each call is given beside it. */
#include "common/names/program/fileworker.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/exits.h"
#include "common/base/system/clock.h"
#include "common/names/program/programwire.h"
#include "common/names/program/sources.h"
#include "common/names/program/workercell.h"
#include "common/wire/bus/scm.h"

#define SMALL_MAX (48ull << 20)
#define MORE_NS 1000000ull /* age of a request after which no announced lookup is begun */

static const struct seccomp_rule worker_calls[] = {
	CALL("recvmsg"),
	CALL("sendto"),
	CALL("pread64"), /* reads the files that it is handed */
	CALL("lseek"),	 /* finds the holes in them (filecrc.c) */
	/* libdw asks for the path of a file, and libc for its message catalogs. */
	CALL_FAILS("open", EACCES),
	CALL_FAILS("openat", EACCES),
	CALL_FAILS("readlink", EACCES),
	CALL_FAILS("readlinkat", EACCES),
	CALL_FAILS("lstat", EACCES),
	CALL_FAILS("stat", EACCES),
	CALL_FAILS("access", EACCES),
	CALL_FAILS("getcwd", EACCES),
	SECCOMP_END,
};

/* --- its end --- */

/* An allocation that failed was usually smaller than this part of the heap. */
#define SHORT_PART 8

static struct {
	int socket;
	size_t heap;
} own;

/* Whether libdw crashed because memory was short: an allocation failed during the request, or one
 * would fail now. */
static bool is_short(int error)
{
	void *p;

	if (error == ENOMEM)
		return true;
	p = mmap(NULL, own.heap / SHORT_PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	if (p == MAP_FAILED)
		return true;
	munmap(p, own.heap / SHORT_PART);
	return false;
}

/* After a failed allocation, libdw may use the NULL pointer (SIGSEGV) or fail an assertion
 * (SIGABRT). That is not the file's fault, so the worker answers -ENOMEM. */
static void on_deadly(int number)
{
	const struct programwire_head h = { .verdict = -ENOMEM };

	if (is_short(errno) && send(own.socket, &h, sizeof(h), MSG_NOSIGNAL) == sizeof(h))
		_exit(EXITS_DONE);
	signal(number, SIG_DFL); /* the signal comes again, and ends the process */
}

static void watch_end(int socket, uint64_t heap)
{
	own.socket = socket;
	own.heap = (size_t)heap;
	/* lazy_memory.c passes other faults to this handler. */
	signal(SIGSEGV, on_deadly);
	signal(SIGBUS, on_deadly);
	signal(SIGABRT, on_deadly);
}

/* --- its time --- */

#define LIFE_SPARE_S 60

static unsigned request_s(uint64_t max)
{
	const uint64_t more = max > SMALL_MAX ? (max - SMALL_MAX) >> 24 : 0;

	return FILEWORKER_CPU_S + (unsigned)(more < 1u << 20 ? more : 1u << 20);
}

/* --- the worker --- */

struct served {
	struct sources *sources; /* NULL: this place is empty */
	uint64_t max;
};

struct fileworker {
	int socket;
	struct served programs[PROGRAMWIRE_PROGRAMS];
	struct names names;
	struct programwire_answer answer;
	uint8_t bytes[PROGRAMWIRE_MAX];
	/* For announced lookups. */
	struct names more_names;
	struct programwire_answer more_answer;
	uint8_t more[PROGRAMWIRE_MORE_MAX], more_bytes[PROGRAMWIRE_MAX];
};

static void served_close(struct served *s)
{
	sources_free(s->sources);
	*s = (struct served){ 0 };
}

/* Returns the next descriptor, which the caller then owns; -1: none. */
static int take_fd(int fds[static PROGRAMWIRE_FDS])
{
	for (unsigned i = 0; i < PROGRAMWIRE_FDS; i++) {
		const int fd = fds[i];

		fds[i] = -1;
		if (fd >= 0)
			return fd;
	}
	return -1;
}

static int served_open(struct served *s, const struct programwire_ask *a,
		       int fds[static PROGRAMWIRE_FDS])
{
	const int fd = take_fd(fds);
	const int debug = a->flags & PROGRAMWIRE_DEBUG ? take_fd(fds) : -1;
	const int shared = a->flags & PROGRAMWIRE_SHARED ? take_fd(fds) : -1;
	const int r = fd < 0 ? -EBADF : sources_open(fd, a->value, &s->sources);

	s->max = a->value;
	if (r) {
		if (debug >= 0)
			close(debug);
		if (shared >= 0)
			close(shared);
		served_close(s);
	} else if (a->step) {
		sources_restore(s->sources, a->step - 1, a->flags & PROGRAMWIRE_UNPROVEN, debug,
				shared);
	}
	if (!r && a->flags & PROGRAMWIRE_NO_V8)
		sources_lacks_v8(s->sources);
	return r;
}

static int look_up(struct served *s, uint64_t value, bool is_offset, struct names *names,
		   struct programwire_head *h)
{
	uint64_t address = value;
	int r = 0;

	if (is_offset)
		r = sources_address(s->sources, value, &address);
	if (r)
		return r;
	h->address = address;
	r = sources_lookup(s->sources, address, names);
	if (is_offset && (r == SYMFILE_NONE || (r == 0 && !names_known(names)))) {
		uint64_t start;
		const int e = sources_start(s->sources, address, &start);

		if (e == 0)
			h->start = start;
		r = e == -ENOMEM ? e : r;
	}
	return r;
}

/* Answers announced lookups, as long as the request takes little time. */
static void look_ahead(struct fileworker *w, struct served *s, const struct programwire_ask *a,
		       uint64_t begun_ns)
{
	size_t used = 0;

	for (uint32_t i = 0; i < a->expected_count && sources_is_ready(s->sources) &&
			     clock_mono_ns() - begun_ns < MORE_NS;
	     i++) {
		struct programwire_more m = { .offset = a->expected[i] };

		names_reset(&w->more_names);
		w->more_answer.head = (struct programwire_head){ .address = UINT64_MAX };
		const int r = look_up(s, m.offset, true, &w->more_names, &w->more_answer.head);

		/* The error is reported when the lookup itself is requested. */
		if (r && r != SYMFILE_NONE)
			break;
		w->more_answer.head.verdict = r;
		m.size = (uint32_t)programwire_put(&w->more_answer, r ? NULL : &w->more_names,
						   w->more_bytes);
		if (m.size > sizeof(w->more) - used || sizeof(m) > sizeof(w->more) - used - m.size)
			break;
		memcpy(w->more + used, &m, sizeof(m));
		memcpy(w->more + used + sizeof(m), w->more_bytes, m.size);
		used += sizeof(m) + m.size;
	}
	w->answer.more = (struct span){ .data = w->more, .len = used };
	w->answer.head.flags |= used ? PROGRAMWIRE_MORE : 0;
}

/* Adds the facts that prof-symd needs besides the verdict. */
static void tell(struct fileworker *w, struct served *s, bool facts)
{
	struct programwire_answer *a = &w->answer;
	struct programwire_facts *f = &a->facts;
	struct span id;
	const char *name;
	bool unproven;

	a->head.bytes = sources_bytes(s->sources);
	if (sources_has(s->sources, SOURCES_DEBUG, &unproven))
		a->head.flags |= PROGRAMWIRE_DEBUG | (unproven ? PROGRAMWIRE_UNPROVEN : 0);
	if (sources_has(s->sources, SOURCES_SHARED, &unproven))
		a->head.flags |= PROGRAMWIRE_SHARED;
	if (sources_dwarf_too_large(s->sources))
		a->head.flags |= PROGRAMWIRE_TOO_LARGE;
	if (sources_dwarf_lost(s->sources))
		a->head.flags |= PROGRAMWIRE_LOST;
	if (sources_is_cut(s->sources))
		a->head.flags |= PROGRAMWIRE_CUT;
	if (facts) {
		memset(f, 0, sizeof(*f));
		a->head.flags |= PROGRAMWIRE_FACTS;
		f->file = *sources_fileid(s->sources);
		f->want = sources_wants(s->sources, &id, &name);
		f->refused = sources_refused(s->sources);
		if (name && strlen(name) > NAMES_TEXT)
			name = NULL;
		f->id_len = id.len <= sizeof(f->id) ? (uint32_t)id.len : 0;
		if (f->id_len)
			memcpy(f->id, id.data, f->id_len);
		f->name_len = name ? (uint32_t)strlen(name) : 0;
		if (name)
			memcpy(f->name, name, f->name_len);
	}
	a->head.step = sources_step(s->sources);
}

/* Serves a request. Returns false if it has no answer. */
static bool serve(struct fileworker *w, const struct programwire_ask *a,
		  int fds[static PROGRAMWIRE_FDS])
{
	const uint64_t begun_ns = clock_mono_ns();
	struct served *s = &w->programs[a->program];
	int r = SYMFILE_NONE;

	names_reset(&w->names);
	w->answer.head = (struct programwire_head){ .address = UINT64_MAX };
	if (a->kind == PROGRAMWIRE_OPEN) {
		served_close(s);
		r = served_open(s, a, fds);
	} else if (a->kind == PROGRAMWIRE_CLOSE) {
		served_close(s);
		malloc_trim(0);
		return false;
	} else if (s->sources) {
		switch (a->kind) {
		case PROGRAMWIRE_LOOKUP:
			sources_charge(s->sources, a->owner);
			r = look_up(s, a->value, a->flags & PROGRAMWIRE_OFFSET, &w->names,
				    &w->answer.head);
			if (r == 0 || r == SYMFILE_NONE)
				look_ahead(w, s, a, begun_ns);
			break;
		case PROGRAMWIRE_OFFER:
			r = sources_offer(s->sources, take_fd(fds)) ? PROGRAMWIRE_YES
								    : PROGRAMWIRE_NO;
			break;
		case PROGRAMWIRE_GIVE_UP:
			sources_give_up(s->sources);
			r = 0;
			break;
		case PROGRAMWIRE_DESCRIBE:
			memset(&w->answer.build, 0, sizeof(w->answer.build));
			r = sources_describe(s->sources, &w->answer.build);
			w->answer.head.flags |= r ? 0 : PROGRAMWIRE_BUILD;
			break;
		case PROGRAMWIRE_REST:
			r = sources_rest(s->sources, a->value != 0) ? PROGRAMWIRE_YES
								    : PROGRAMWIRE_NO;
			if (r == PROGRAMWIRE_YES)
				malloc_trim(0);
			break;
		}
	}
	w->answer.head.verdict = r;
	if (s->sources)
		tell(w, s, a->kind != PROGRAMWIRE_LOOKUP || r == VERDICT_AGAIN);
	return true;
}

static bool receive(int socket, struct programwire_ask *ret, int ret_fds[static PROGRAMWIRE_FDS])
{
	return scm_receive(socket, ret, sizeof(*ret), ret_fds, PROGRAMWIRE_FDS, 0) ==
		       sizeof(*ret) &&
	       ret->program < PROGRAMWIRE_PROGRAMS && ret->step <= SOURCES_DONE + 1 &&
	       ret->expected_count <= PROGRAMWIRE_EXPECTED;
}

static void work(struct fileworker *w)
{
	struct programwire_ask a;
	int fds[PROGRAMWIRE_FDS], fd;

	while (receive(w->socket, &a, fds)) {
		workercell_begin(request_s(
			a.kind == PROGRAMWIRE_OPEN ? a.value : w->programs[a.program].max));
		errno = 0;
		const uint64_t begun_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		const bool go_on = serve(w, &a, fds);

		for (fd = take_fd(fds); fd >= 0; fd = take_fd(fds))
			close(fd);
		if (!go_on)
			continue;
		const uint64_t cpu_us = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun_ns) / 1000;

		w->answer.head.cpu_us = numbers_u32(cpu_us);
		size_t n = programwire_put(&w->answer, w->answer.head.verdict ? NULL : &w->names,
					   w->bytes);

		workercell_end();
		ssize_t sent = send(w->socket, w->bytes, n, MSG_NOSIGNAL);

		/* The answer is larger than the host lets a socket hold: answer without names. */
		if (sent < 0 && errno == EMSGSIZE) {
			w->answer.head.verdict = SYMFILE_NONE;
			w->answer.head.flags &= ~(uint32_t)PROGRAMWIRE_MORE;
			n = programwire_put(&w->answer, NULL, w->bytes);
			sent = send(w->socket, w->bytes, n, MSG_NOSIGNAL);
		}
		if (sent < 0)
			return;
	}
}

static _Noreturn void run(int socket, uint64_t heap)
{
	static struct fileworker w;

	if (!WORKERCELL_ASAN)
		watch_end(socket, heap);
	/* The limit covers all requests of the worker's life, so that a worker that is not taken
	 * over never reaches it. */
	workercell_enter(worker_calls, heap, FILEWORKER_LIFE_S + LIFE_SPARE_S + request_s(heap));
	w.socket = socket;
	work(&w);
	_exit(EXITS_DONE);
}

const struct filekeeper_class fileworker_class = {
	.name = "prof-symd-dwarf",
	.run = run,
	.calls = worker_calls,
};
