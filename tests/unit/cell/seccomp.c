/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child enters each filter and tries something; its status is the answer. Under
 * AddressSanitizer there are no filters, so nothing is killed there. */
#include "common/cell/confine/seccomp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define FILTERED false
#else
#define FILTERED true
#endif

#define KILLED (1000 + SIGSYS)
#define WRITES (O_ACCMODE | O_CREAT | O_TRUNC)

static const struct seccomp_rule basics[] = {
	CALL("exit_group"),
	CALL("exit"),
	CALL("write"),
	CALL("futex"),
	CALL("rseq"),
	CALL("madvise"),
	CALL("munmap"),
	CALL("rt_sigprocmask"),
	CALL_IF("openat", SECCOMP_CLEAR(2, WRITES)),
	CALL_FAILS("getppid", EXDEV),
	CALL("no_such_call_at_all"),
	SECCOMP_END,
};
static const struct seccomp_rule parents[] = {
	CALL_IF("getsid", SECCOMP_IS(0, 0)),
	CALL_IF("getsid", SECCOMP_IS(0, 1)),
	SECCOMP_END,
};
static const struct seccomp_rule *const both[] = { basics, NULL, parents };

static int in_child(int (*body)(void))
{
	const pid_t child = fork();
	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		_exit(seccomp_enter(both, 3, false) ? 99 : body());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int nothing(void)
{
	return 0;
}

static int call_another(void)
{
	return getpgid(0) < 0;
}

static int call_what_fails(void)
{
	return syscall(SYS_getppid) == -1 && errno == EXDEV ? 0 : 1;
}

static int call_what_is_newer(void)
{
	return syscall(511) == -1 && errno == ENOSYS && syscall(SECCOMP_NEWEST + 1) == -1 &&
			       errno == ENOSYS
		       ? 0
		       : 1;
}

static int call_far_beyond(void)
{
	syscall(10000);
	return 1;
}

static int read_and_ask(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0 && getsid(0) >= 0 &&
			       syscall(SYS_getsid, 1) >= -1
		       ? 0
		       : 1;
}

static int open_to_write(void)
{
	return open("/dev/null", O_WRONLY | O_CLOEXEC) < 0;
}

static int ask_another(void)
{
	return getsid(2) < -1;
}

#if defined(__x86_64__)
static int call_as_32_bits(void)
{
	long r;

	/* getpid of i386: its numbers are others. */
	asm volatile("int $0x80" : "=a"(r) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	return 1;
}
#endif

Test(seccomp, allowed_calls_work)
{
	cr_assert_eq(in_child(nothing), 0);
	cr_assert_eq(in_child(read_and_ask), 0);
}

Test(seccomp, other_calls_kill)
{
	cr_assert_eq(in_child(call_another), FILTERED ? KILLED : 0);
}

Test(seccomp, a_rule_with_an_error_fails)
{
	if (FILTERED)
		cr_assert_eq(in_child(call_what_fails), 0);
}

Test(seccomp, numbers_of_newer_kernels_are_unknown_and_kill_nobody)
{
	if (FILTERED)
		cr_assert_eq(in_child(call_what_is_newer), 0);
}

Test(seccomp, numbers_beyond_all_kill)
{
	if (FILTERED)
		cr_assert_eq(in_child(call_far_beyond), KILLED);
}

Test(seccomp, conditions_hold)
{
	cr_assert_eq(in_child(open_to_write), FILTERED ? KILLED : 0);
	cr_assert_eq(in_child(ask_another), FILTERED ? KILLED : 0);
}

#if defined(__x86_64__)
Test(seccomp, calls_of_another_machine_kill)
{
	if (FILTERED)
		cr_assert_eq(in_child(call_as_32_bits), KILLED);
}
#endif

static int ready[2], go[2];

static void *late(void *arg)
{
	char c;

	/* read() is not named: the filter must not come before this returns. */
	if (read(go[0], &c, 1) == 1)
		getpgid(0);
	return arg;
}

Test(seccomp, a_thread_that_runs_already_is_reached)
{
	static const struct seccomp_rule reads[] = { CALL("read"), CALL("pause"), SECCOMP_END };
	static const struct seccomp_rule *const all[] = { basics, reads };
	const pid_t child = fork();
	pthread_t thread;
	int status;

	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		if (pipe(ready) || pipe(go) || pthread_create(&thread, NULL, late, NULL))
			_exit(98);
		if (seccomp_enter(all, 2, true))
			_exit(99);
		if (write(go[1], "g", 1) == 1 && FILTERED)
			pause();
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	if (FILTERED)
		cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status %x", status);
}
