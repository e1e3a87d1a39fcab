/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/lastword.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define KIND_SHIFT 56
#define ALTERNATE_STACK (64u << 10)

/* The contents of the page. */
struct page {
	uint64_t what; /* kind << KIND_SHIFT | id */
	uint64_t end;
	uint64_t wanted;
	uint64_t granted; /* by prof-bpf */
};

static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
#define DEADLY (sizeof(deadly) / sizeof(deadly[0]))

static struct page unread;
static struct page *page = &unread;
static uint64_t serial; /* of the work in hand */
static struct sigaction before[DEADLY];
static pid_t self;
static unsigned slow_after_s;

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
	return w;
}

void lastword_grant(int fd, uint64_t bytes)
{
	/* If the write fails, the parser keeps the former value. */
	if (fd >= 0 && pwrite(fd, &bytes, sizeof(bytes), offsetof(struct page, granted)) < 0)
		return;
}

uint64_t lastword_wanted(int fd)
{
	struct page p;

	return fd >= 0 && pread(fd, &p, sizeof(p), 0) == sizeof(p) ? p.wanted : 0;
}

/* --- the parser's side --- */

uint64_t lastword_granted(void)
{
	return __atomic_load_n(&page->granted, __ATOMIC_ACQUIRE);
}

void lastword_want(uint64_t bytes)
{
	__atomic_store_n(&page->wanted, bytes, __ATOMIC_RELEASE);
}

uint64_t lastword_begin(enum lastword_kind kind, uint64_t id)
{
	const uint64_t former = page->what;

	serial++;
	__atomic_store_n(&page->what, (uint64_t)kind << KIND_SHIFT | id, __ATOMIC_RELEASE);
	return former;
}

void lastword_back(uint64_t former)
{
	serial++;
	__atomic_store_n(&page->what, former, __ATOMIC_RELEASE);
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

/* Restores the former handler. Then the signal comes again: from the instruction that caused it,
 * from abort, or by raise. */
static void on_deadly(int number, siginfo_t *si, void *context)
{
	(void)context;
	for (size_t i = 0; i < DEADLY; i++)
		if (deadly[i] == number)
			sigaction(number, &before[i], NULL);
	/* A signal of another process says nothing about our work. */
	if (si->si_code <= 0 && si->si_pid != self)
		raise(number);
	else
		say_end(LASTWORD_CRASH);
}

/* Runs after each second of cpu time. */
static void on_second(int number)
{
	static uint64_t seen;
	static unsigned seconds;

	(void)number;
	if (page->what == 0 || serial != seen) {
		seen = serial;
		seconds = 0;
		return;
	}
	if (++seconds < slow_after_s)
		return;
	say_end(LASTWORD_SLOW);
	signal(SIGXCPU, SIG_DFL);
	raise(SIGXCPU);
}

void lastword_watch(unsigned slow_s)
{
	static uint8_t stack[ALTERNATE_STACK] __attribute__((aligned(64)));
	const stack_t ours = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const struct itimerval second = { .it_interval.tv_sec = 1, .it_value.tv_sec = 1 };
	stack_t theirs;

	slow_after_s = slow_s;
	self = getpid();

	/* Keep an alternate stack of a sanitizer. */
	if (sigaltstack(NULL, &theirs) == 0 && theirs.ss_flags & SS_DISABLE)
		sigaltstack(&ours, NULL);

	struct sigaction a = { .sa_sigaction = on_deadly, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	for (size_t i = 0; i < DEADLY; i++)
		sigaction(deadly[i], &a, &before[i]);

	struct sigaction tick = { .sa_handler = on_second, .sa_flags = SA_RESTART };

	sigaction(SIGPROF, &tick, NULL);
	setitimer(ITIMER_PROF, &second, NULL);
}
