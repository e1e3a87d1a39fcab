/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/peer/lastword.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"

#define KIND_SHIFT 56
#define ALTERNATE_STACK (64u << 10)
#define REST_STEP_MS 25 /* steps of a pause, which may be cancelled after each of them */

/* The contents of the page. */
struct page {
	uint64_t what; /* kind << KIND_SHIFT | id */
	uint64_t end;
	uint64_t wanted;
	uint64_t granted; /* written by prof-bpf, like the last two fields */
	uint64_t spent_ns;
	uint64_t stopped; /* same encoding as `what`, or 0 */
	uint64_t stop_after_ns;
	uint64_t rest_ms;
};

static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
#define DEADLY (sizeof(deadly) / sizeof(deadly[0]))

static struct page unread;
static struct page *page = &unread;
static uint64_t serial; /* of the present work */
static struct sigaction before[DEADLY];
static pid_t self;
static unsigned slow_after_s, rest_part = LASTWORD_PARTS;
static volatile uint64_t owed_ns; /* a pause that is still to come */
static struct {
	void (*fn)(void *ctx);
	void *ctx;
} while_resting;

/* --- prof-bpf's side --- */

int lastword_new(void)
{
	const int fd = memfd_create("lastword", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct page)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		const int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

struct lastword lastword_read(int fd)
{
	struct lastword w = { LASTWORD_NOTHING };
	struct page p;

	if (fd < 0 || pread(fd, &p, sizeof(p), 0) != sizeof(p))
		return w;
	const uint64_t kind = p.what >> KIND_SHIFT;

	if (kind != LASTWORD_FILE && kind != LASTWORD_PROCESS)
		return w;
	w.kind = (enum lastword_kind)kind;
	w.id = p.what & ((1ull << KIND_SHIFT) - 1);
	if (p.end == LASTWORD_CRASH || p.end == LASTWORD_SLOW)
		w.end = (enum lastword_end)p.end;
	w.spent_ns = p.spent_ns;
	return w;
}

/* If the write fails, the parser keeps the previous value. */
static void put_word(int fd, uint64_t word, size_t at)
{
	if (fd >= 0 && pwrite(fd, &word, sizeof(word), (off_t)at) < 0)
		return;
}

void lastword_grant(int fd, uint64_t bytes)
{
	put_word(fd, bytes, offsetof(struct page, granted));
}

void lastword_stop(int fd, uint64_t id, uint64_t after_ns)
{
	put_word(fd, after_ns, offsetof(struct page, stop_after_ns));
	put_word(fd, id ? (uint64_t)LASTWORD_FILE << KIND_SHIFT | id : 0,
		 offsetof(struct page, stopped));
}

void lastword_rest(int fd, uint64_t ms)
{
	put_word(fd, ms, offsetof(struct page, rest_ms));
}

uint64_t lastword_wanted(int fd)
{
	struct page p;

	return fd >= 0 && pread(fd, &p, sizeof(p), 0) == sizeof(p) ? p.wanted : 0;
}

/* --- the parser's side --- */

/* Notes how long to pause for this work. */
static void owe(uint64_t worked_ns)
{
	const uint64_t rest_ms = __atomic_load_n(&page->rest_ms, __ATOMIC_ACQUIRE),
		       most_ns = LASTWORD_REST_MS * 1000000ull;
	const uint64_t all_ns = rest_ms < LASTWORD_REST_MS ? worked_ns / LASTWORD_TICK_MS * rest_ms
							   : most_ns;

	owed_ns = numbers_smaller(owed_ns + all_ns * rest_part / LASTWORD_PARTS, most_ns);
}

void lastword_beat(void)
{
	if (while_resting.fn)
		while_resting.fn(while_resting.ctx);
}

/* Pauses for what is owed. in_tick: called from a signal handler. */
static void pay(bool in_tick)
{
	const uint64_t rest_ms = __atomic_load_n(&page->rest_ms, __ATOMIC_ACQUIRE);
	const struct timespec step = { .tv_nsec = REST_STEP_MS * 1000000l };
	const uint64_t step_ns = REST_STEP_MS * 1000000ull;

	while (owed_ns >= step_ns) {
		/* prof-bpf may cancel the pause. */
		if (__atomic_load_n(&page->rest_ms, __ATOMIC_ACQUIRE) != rest_ms) {
			owed_ns = 0;
			return;
		}
		owed_ns -= step_ns;
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
		if (!in_tick)
			lastword_beat();
	}
}

uint64_t lastword_granted(void)
{
	return __atomic_load_n(&page->granted, __ATOMIC_ACQUIRE);
}

bool lastword_is_stopped(void)
{
	return page->what && __atomic_load_n(&page->stopped, __ATOMIC_ACQUIRE) == page->what &&
	       __atomic_load_n(&page->spent_ns, __ATOMIC_RELAXED) >=
		       __atomic_load_n(&page->stop_after_ns, __ATOMIC_RELAXED);
}

void lastword_want(uint64_t bytes)
{
	__atomic_store_n(&page->wanted, bytes, __ATOMIC_RELEASE);
}

uint64_t lastword_begin(enum lastword_kind kind, uint64_t id)
{
	const uint64_t former = page->what;

	serial++;
	__atomic_store_n(&page->spent_ns, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&page->what, (uint64_t)kind << KIND_SHIFT | id, __ATOMIC_RELEASE);
	return former;
}

void lastword_back(uint64_t former)
{
	serial++;
	__atomic_store_n(&page->spent_ns, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&page->what, former, __ATOMIC_RELEASE);
	if (while_resting.fn)
		pay(false);
}

int lastword_take(int fd)
{
	struct page *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const int r = p == MAP_FAILED ? -errno : 0;

	close(fd);
	if (r)
		return r;
	p->what = page->what;
	p->end = page->end;
	p->wanted = page->wanted;
	if (page != &unread)
		munmap(page, sizeof(*page));
	page = p;
	return 0;
}

static void say_end(enum lastword_end end)
{
	__atomic_store_n(&page->end, (uint64_t)end, __ATOMIC_RELEASE);
}

/* Restores the previous handler. Then the signal comes again: from the instruction that caused it,
 * from abort, or by raise. */
static void on_deadly(int number, siginfo_t *si, void *context)
{
	for (size_t i = 0; i < DEADLY; i++)
		if (deadly[i] == number)
			sigaction(number, &before[i], NULL);
	/* A signal from another process is not related to our work. */
	if (si->si_code <= 0 && si->si_pid != self)
		raise(number);
	else
		say_end(LASTWORD_CRASH);
}

void lastword_rest_for(uint64_t worked_ns)
{
	owe(worked_ns);
	pay(false);
}

bool lastword_rests(void)
{
	return __atomic_load_n(&page->rest_ms, __ATOMIC_ACQUIRE) != 0;
}

uint64_t lastword_rest_ns(uint64_t worked_ns)
{
	const uint64_t rest_ms = __atomic_load_n(&page->rest_ms, __ATOMIC_ACQUIRE);

	return worked_ns / LASTWORD_TICK_MS * numbers_smaller(rest_ms, LASTWORD_REST_MS);
}

void lastword_rest_part(unsigned part)
{
	rest_part = part < LASTWORD_PARTS ? part : LASTWORD_PARTS;
}

void lastword_rest_with(void (*fn)(void *ctx), void *ctx)
{
	while_resting.fn = fn;
	while_resting.ctx = ctx;
}

/* Called about once per tick of cpu time: the timer counts whole ticks of the scheduler. */
static void on_tick(int number)
{
	static uint64_t seen, since_ns;
	/* Since when the work should have been aborted; 0: it need not be. */
	static uint64_t overdue_ns;
	const int error = errno;
	const uint64_t now_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (page->what == 0 || serial != seen) {
		seen = serial;
		since_ns = now_ns;
	}
	__atomic_store_n(&page->spent_ns, now_ns - since_ns, __ATOMIC_RELEASE);
	if (!lastword_is_stopped())
		overdue_ns = 0;
	else if (!overdue_ns)
		overdue_ns = now_ns;
	if (now_ns - since_ns >= slow_after_s * 1000000000ull ||
	    (overdue_ns && now_ns - overdue_ns >= LASTWORD_OVERDUE_NS)) {
		say_end(LASTWORD_SLOW);
		signal(SIGXCPU, SIG_DFL);
		raise(SIGXCPU);
	}
	/* One that calls a function during pauses must not call it here: it pauses when this piece
	 * of its work ends. */
	if (page->what)
		owe(LASTWORD_TICK_MS * 1000000ull);
	if (page->what && !while_resting.fn)
		pay(true);
	errno = error;
}

void lastword_watch(unsigned slow_s)
{
	static uint8_t stack[ALTERNATE_STACK] __attribute__((aligned(64)));
	const stack_t ours = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const struct timeval every = { .tv_usec = LASTWORD_TICK_MS * 1000 };
	const struct itimerval ticks = { .it_interval = every, .it_value = every };
	stack_t former;

	slow_after_s = slow_s;
	self = getpid();

	/* Keep the alternate stack of a sanitizer. */
	if (sigaltstack(NULL, &former) == 0 && former.ss_flags & SS_DISABLE)
		sigaltstack(&ours, NULL);

	struct sigaction a = { .sa_sigaction = on_deadly, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	for (size_t i = 0; i < DEADLY; i++)
		sigaction(deadly[i], &a, &before[i]);

	struct sigaction tick = { .sa_handler = on_tick, .sa_flags = SA_RESTART };

	sigaction(SIGPROF, &tick, NULL);
	setitimer(ITIMER_PROF, &ticks, NULL);
}
