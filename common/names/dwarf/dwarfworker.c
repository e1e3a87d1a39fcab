/* SPDX-License-Identifier: Apache-2.0 */
/* The list of system calls below is all that a libdw that was taken over can use. So each call has
 * its reason beside it. */
#include "common/names/dwarf/dwarfworker.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "common/cell/baseline.h"
#include "common/cell/sandbox.h"
#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/dwarf/dwarfwire.h"
#include "common/wire/scm.h"

#define SMALL_MAX (48ull << 20)
#define HANDED 2

const struct seccomp_rule dwarfworker_calls[] = {
	CALL("recvmsg"),
	CALL("sendto"),
	CALL("pread64"), /* reads the files it was handed */
	/* libdw asks for the path of a file, and libc for its message catalogs. */
	CALL_FAILS("open", EACCES),
	CALL_FAILS("openat", EACCES),
	CALL_FAILS("readlink", EACCES),
	CALL_FAILS("readlinkat", EACCES),
	CALL_FAILS("lstat", EACCES),
	CALL_FAILS("stat", EACCES),
	CALL_FAILS("access", EACCES),
	CALL_FAILS("getcwd", EACCES),
	CALLS_END,
};

/* --- its end --- */

/* An allocation that failed was mostly smaller than this part of the heap. */
#define SHORT_PART 8

static struct {
	int socket;
	size_t heap;
} own;

/* Whether libdw crashed for want of memory: an allocation failed during the request, or would fail
 * now. */
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
 * (SIGABRT). That is not the file's fault, so the answer says -ENOMEM. */
static void on_deadly(int number)
{
	const struct dwarfwire_head h = { .verdict = -ENOMEM };

	if (is_short(errno) && send(own.socket, &h, sizeof(h), MSG_NOSIGNAL) == sizeof(h))
		_exit(0);
	signal(number, SIG_DFL); /* the signal comes again, and ends the process */
}

static void watch_end(int socket, uint64_t heap)
{
	own.socket = socket;
	own.heap = (size_t)heap;
	/* lazy_memory.c hands faults to this handler that are not its own. */
	signal(SIGSEGV, on_deadly);
	signal(SIGBUS, on_deadly);
	signal(SIGABRT, on_deadly);
}

/* --- its time --- */

#define LIFE_SPARE_S 60

/* Seconds of cpu time that the request has left; 0: there is no request. */
static volatile sig_atomic_t left_s;

static unsigned request_s(uint64_t max)
{
	const uint64_t more = max > SMALL_MAX ? (max - SMALL_MAX) >> 24 : 0;

	return DWARFWORKER_CPU_S + (unsigned)(more < 1u << 20 ? more : 1u << 20);
}

/* Called after each second of cpu time. */
static void on_second(int number)
{
	(void)number;
	if (left_s > 0 && --left_s == 0)
		_exit(1);
}

/* One second more, since the first one may be almost over. */
static void begin_time(uint64_t max)
{
	left_s = (sig_atomic_t)request_s(max) + 1;
}

/* Sets a timer that needs no further system call, and a limit that no system call can raise. The
 * limit covers all requests of a worker's life, so that an honest one never reaches it. */
static int watch_time(uint64_t heap)
{
	const struct itimerval second = { .it_interval.tv_sec = 1, .it_value.tv_sec = 1 };
	const struct sigaction tick = { .sa_handler = on_second, .sa_flags = SA_RESTART };
	const rlim_t life = DWARFWORKER_LIFE_S + LIFE_SPARE_S + request_s(heap);
	const int r = sandbox_lower(RLIMIT_CPU, life);

	if (r)
		return r;
	return sigaction(SIGPROF, &tick, NULL) || setitimer(ITIMER_PROF, &second, NULL) ? -errno
											: 0;
}

/* --- the worker --- */

struct served {
	struct symfile *file, *alt;
	struct dwarfinfo *info;
	uint64_t max;
};

struct worker {
	int socket;
	struct served files[DWARFWIRE_FILES];
	struct names names;
	uint8_t answer[DWARFWIRE_MAX];
};

static void served_close(struct served *s)
{
	dwarfinfo_free(s->info);
	symfile_free(s->file);
	symfile_free(s->alt);
	*s = (struct served){ 0 };
}

/* Takes the descriptors. */
static int served_open(struct served *s, const int fds[static HANDED], uint64_t max)
{
	int r = fds[0] < 0 ? -EBADF : symfile_open(fds[0], &s->file);

	s->max = max;
	if (r && fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0 && (r || symfile_open(fds[1], &s->alt))) {
		close(fds[1]);
		s->alt = NULL;
	}
	if (!r)
		r = dwarfinfo_open(s->file, s->alt, max, &s->info);
	if (r)
		served_close(s);
	return r;
}

/* Takes the descriptors. */
static void served_offer(struct served *s, const int fds[static HANDED])
{
	struct symfile *f = NULL;

	if (fds[0] >= 0 && (!s->info || symfile_open(fds[0], &f))) {
		close(fds[0]);
		f = NULL;
	}
	if (fds[1] >= 0)
		close(fds[1]);
	if (s->info)
		dwarfinfo_offer(s->info, f);
}

/* False: the request has no answer. */
static bool serve(struct worker *w, const struct dwarfwire_ask *a, const int fds[static HANDED],
		  int *ret)
{
	struct served *s = &w->files[a->file];

	names_reset(&w->names);
	switch (a->kind) {
	case DWARFWIRE_OPEN:
		served_close(s);
		*ret = served_open(s, fds, a->value);
		return true;
	case DWARFWIRE_LOOKUP:
		*ret = s->info ? dwarfinfo_lookup(s->info, a->value, &w->names) : SYMFILE_NONE;
		return true;
	case DWARFWIRE_OFFER:
		served_offer(s, fds);
		*ret = 0;
		return true;
	case DWARFWIRE_REST:
		*ret = s->info && dwarfinfo_rest(s->info, a->value != 0);
		if (*ret)
			malloc_trim(0);
		return true;
	default:
		served_close(s);
		malloc_trim(0);
		return false;
	}
}

static bool receive(int socket, struct dwarfwire_ask *ret, int ret_fds[static HANDED])
{
	return scm_receive(socket, ret, sizeof(*ret), ret_fds, HANDED, 0) == sizeof(*ret) &&
	       ret->file < DWARFWIRE_FILES;
}

static void work(struct worker *w)
{
	struct dwarfwire_ask a;
	int fds[HANDED], r;

	while (receive(w->socket, &a, fds)) {
		if (a.kind != DWARFWIRE_OPEN && a.kind != DWARFWIRE_OFFER) {
			for (int i = 0; i < HANDED; i++)
				if (fds[i] >= 0)
					close(fds[i]);
		}
		const struct served *s = &w->files[a.file];

		begin_time(a.kind == DWARFWIRE_OPEN ? a.value : s->max);
		errno = 0;
		if (!serve(w, &a, fds, &r))
			continue;
		const size_t n = dwarfwire_put(r, s->info ? dwarfinfo_bytes(s->info) : 0,
					       r && r != DWARFINFO_AGAIN ? NULL : &w->names,
					       w->answer, sizeof(w->answer));

		left_s = 0;
		ssize_t sent = send(w->socket, w->answer, n, MSG_NOSIGNAL);

		/* Larger than the host lets a socket hold: answer without names. */
		if (sent < 0 && errno == EMSGSIZE)
			sent = send(
				w->socket, w->answer,
				dwarfwire_put(SYMFILE_NONE, 0, NULL, w->answer, sizeof(w->answer)),
				MSG_NOSIGNAL);
		if (sent < 0)
			return;
	}
}

_Noreturn void dwarfworker_run(int socket, uint64_t heap)
{
	const struct seccomp_rule itself[] = {
		/* abort() */
		CALL_IF("tgkill", SECCOMP_IS(0, getpid()), SECCOMP_IS(2, SIGABRT)),
		CALLS_END,
	};
	const struct seccomp_rule *const lists[] = { baseline_calls, dwarfworker_calls, itself };
	static struct worker w;
	int r = DWARFWORKER_ASAN ? 0 : sandbox_lower(RLIMIT_DATA, heap);

	if (!DWARFWORKER_ASAN)
		watch_end(socket, heap);
	if (!r)
		r = watch_time(heap);
	if (!r)
		r = seccomp_enter(lists, 3, false);
	if (r && r != -EOPNOTSUPP)
		_exit(1);
	w.socket = socket;
	work(&w);
	_exit(0);
}
