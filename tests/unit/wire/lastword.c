/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/peer/lastword.h"

/* Returns the last word of a child that starts on a file and then does this. */
static struct lastword of(void (*deed)(void), int *ret_status)
{
	const int fd = lastword_new();

	cr_assert_geq(fd, 0);

	const pid_t pid = fork();

	if (!pid) {
		lastword_watch(1);
		if (lastword_take(dup(fd)))
			_exit(99);
		lastword_begin(LASTWORD_FILE, 7);
		deed();
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, ret_status, 0), pid);

	const struct lastword w = lastword_read(fd);

	close(fd);
	return w;
}

static void nothing(void)
{
}

static void done(void)
{
	lastword_back(lastword_begin(LASTWORD_PROCESS, 9));
	lastword_back(0);
}

static void crash(void)
{
	static volatile uintptr_t nowhere = 8;

	*(volatile int *)nowhere = 1;
}

static int deeper(int n)
{
	volatile char big[4096];

	big[0] = (char)n;
	return n ? deeper(n + 1) + big[0] : 0;
}

static void overflow(void)
{
	deeper(1);
}

static void killed(void)
{
	kill(getpid(), SIGKILL);
}

__attribute__((unused)) static void killed_by_another(void)
{
	const pid_t parent = getpid();
	const pid_t pid = fork();

	if (!pid) {
		kill(parent, SIGSEGV);
		_exit(0);
	}
	for (;;)
		pause();
}

static void spin(void)
{
	for (;;)
		__asm__ volatile("" ::: "memory");
}

#define EXPECT(deed, wanted) \
	do { \
		int status; \
		const struct lastword w = of(deed, &status); \
		cr_assert_eq(w.kind, LASTWORD_FILE); \
		cr_assert_eq(w.id, 7); \
		cr_assert_eq(w.end, wanted); \
		cr_assert(status != 0 || (deed) == nothing); \
	} while (0)

Test(lastword, says_what_was_worked_on_and_how_it_ended)
{
	EXPECT(nothing, LASTWORD_NONE);
	EXPECT(crash, LASTWORD_CRASH);
	EXPECT(abort, LASTWORD_CRASH);
	EXPECT(overflow, LASTWORD_CRASH);
	EXPECT(killed, LASTWORD_NONE);
#ifndef __SANITIZE_ADDRESS__ /* which handles that signal and aborts */
	EXPECT(killed_by_another, LASTWORD_NONE);
#endif
}

Test(lastword, a_process_that_takes_too_long_ends_itself)
{
	int status;
	const struct lastword w = of(spin, &status);

	cr_assert_eq(w.end, LASTWORD_SLOW);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
}

static int stop_page;

/* Works until it is told to stop; prof-bpf asks for that after 50 ms. */
static void stop_when_told(void)
{
	lastword_stop(stop_page, 6, 0);
	if (lastword_is_stopped())
		_exit(3); /* that is another file */
	lastword_stop(stop_page, 7, 50000000);
	if (lastword_is_stopped())
		_exit(4); /* not yet */
	while (!lastword_is_stopped())
		;
	lastword_begin(LASTWORD_FILE, 8);
	_exit(lastword_is_stopped() ? 5 : 0);
}

static void spin_on(void)
{
	lastword_stop(stop_page, 7, 50000000);
	spin();
}

/* The last word of a parser that does this, and can tell itself to stop through stop_page. */
static struct lastword of_stopped(void (*deed)(void), int *ret_status)
{
	stop_page = lastword_new();
	cr_assert_geq(stop_page, 0);

	const pid_t pid = fork();

	if (!pid) {
		lastword_watch(10);
		if (lastword_take(dup(stop_page)))
			_exit(99);
		lastword_begin(LASTWORD_FILE, 7);
		deed();
	}
	cr_assert_eq(waitpid(pid, ret_status, 0), pid);

	const struct lastword w = lastword_read(stop_page);

	close(stop_page);
	return w;
}

Test(lastword, work_is_put_aside_when_it_took_so_long)
{
	int status;
	const struct lastword w = of_stopped(stop_when_told, &status);

	cr_assert_eq(status, 0, "%x", status);
	cr_assert(w.id == 8 && w.spent_ns == 0);
}

Test(lastword, a_parser_that_does_not_stop_when_told_ends_itself)
{
	int status;
	const struct lastword w = of_stopped(spin_on, &status);

	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
	cr_expect_eq(w.end, LASTWORD_SLOW);
	cr_expect(w.spent_ns >= LASTWORD_OVERDUE_NS && w.spent_ns < 3 * LASTWORD_OVERDUE_NS);
}

Test(lastword, a_parser_rests_as_long_as_it_is_asked)
{
	struct rusage used;
	int status;
	const int fd = lastword_new();
	const pid_t pid = fork();

	if (!pid) {
		const uint64_t until_ns = clock_mono_ns() + 2000000000;

		lastword_watch(10);
		if (lastword_take(dup(fd)))
			_exit(99);
		lastword_rest(fd, 475);
		lastword_begin(LASTWORD_FILE, 7);
		while (clock_mono_ns() < until_ns)
			;
		_exit(0);
	}
	cr_assert_eq(wait4(pid, &status, 0, &used), pid);
	cr_assert_eq(status, 0);
	cr_assert(used.ru_utime.tv_sec + used.ru_stime.tv_sec == 0 &&
		  used.ru_utime.tv_usec + used.ru_stime.tv_usec < 500000);
	close(fd);
}

static void count(void *ctx)
{
	++*(unsigned *)ctx;
}

static void rest_often(void)
{
	unsigned rested = 0;

	lastword_rest_with(count, &rested);
	/* It deserves a rest of half a second. */
	lastword_rest_for(LASTWORD_TICK_MS * 1000000ull);
	lastword_rest_with(NULL, NULL);
	_exit(rested >= 2 && rested <= 20 ? 1 : 2);
}

Test(lastword, a_parser_can_say_that_it_rests)
{
	const int fd = lastword_new();
	int status;

	cr_assert_geq(fd, 0);
	lastword_rest(fd, 500);
	const pid_t pid = fork();

	if (!pid) {
		if (!lastword_take(dup(fd)))
			rest_often();
		_exit(99);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%x", (unsigned)status);
	close(fd);
}

Test(lastword, a_finished_item_is_not_blamed)
{
	int status;

	cr_assert_eq(of(done, &status).kind, LASTWORD_NOTHING);
}

Test(lastword, a_malformed_or_missing_page_says_nothing)
{
	static const uint64_t nonsense[2] = { UINT64_MAX, UINT64_MAX };
	const int fd = lastword_new();

	cr_assert_eq(lastword_read(-1).kind, LASTWORD_NOTHING);
	cr_assert_eq(lastword_read(fd).kind, LASTWORD_NOTHING);
	cr_assert_eq(pwrite(fd, nonsense, sizeof(nonsense), 0), sizeof(nonsense));
	cr_assert_eq(lastword_read(fd).kind, LASTWORD_NOTHING);
	cr_assert(ftruncate(fd, 0), "its size is forever");
	close(fd);
}
