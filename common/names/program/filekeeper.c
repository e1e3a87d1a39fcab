/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/filekeeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/exits.h"
#include "common/base/system/clock.h"
#include "common/cell/confine/baseline.h"
#include "common/cell/confine/landlock.h"
#include "common/cell/keeper.h"
#include "common/names/program/workercell.h"
#include "common/wire/bus/scm.h"

/* The system calls of the keeper, and of a new worker until it installs its own list. */
static const struct seccomp_rule own_calls[] = {
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_NAME)), /* the worker's name */
	CALL_IF("tgkill", SECCOMP_IS(2, SIGABRT)),    /* the worker's abort() */
	CALL_IF("prlimit64", SECCOMP_IS(0, 0)),
	CALL("getrlimit"),
	CALL("setrlimit"),
	CALL("setitimer"), /* the worker's timer */
	/* The worker's cpu time. */
	CALL_IF("clock_gettime", SECCOMP_SET(0, CLOCK_OTHERS)),
	SECCOMP_END,
};

#define END_NS 100000000ull /* for the kernel to end a killed worker */
#define STEP_NS 1000000l

/* The settings of the keeper, and its workers. */
struct keeper {
	const struct filekeeper_class *programs, *code;
	uint64_t heap; /* the most that any worker may use */
	pid_t workers[FILEKEEPER_KINDS];
	/* Killed workers that the kernel has not ended, because they wait for a file. Those that
	 * already run when the last one may start can join them. */
	pid_t hung[FILEKEEPER_HUNG + FILEKEEPER_KINDS];
	unsigned hung_len;
};

static pid_t start_worker(const struct keeper *k, const struct filekeeper_ask *a, int *ret_socket)
{
	const struct filekeeper_class *class = a->kind >= FILEKEEPER_CODE_OF_ROOT ? k->code
										  : k->programs;
	const uint64_t heap = numbers_smaller(a->heap, k->heap);
	const pid_t pid = keeper_fork(ret_socket);

	if (pid == 0) {
		prctl(PR_SET_NAME, class->name, 0, 0, 0);
		if (keeper_hold_as_worker(*ret_socket, 1))
			_exit(EXITS_FAILED);
		class->run(KEEPER_SOCKET, heap);
	}
	return pid;
}

/* Forgets killed workers that have ended late. */
static void reap_hung(struct keeper *k)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < k->hung_len; i++)
		if (!waitpid(k->hung[i], NULL, WNOHANG))
			k->hung[kept++] = k->hung[i];
	k->hung_len = kept;
}

/* Ends the worker of a kind. Returns its status; 0: the kernel does not end it now. Such a worker
 * waits for a file whose lock somebody holds. */
static int end_worker(struct keeper *k, uint32_t kind)
{
	const struct timespec step = { .tv_nsec = STEP_NS };
	const pid_t pid = k->workers[kind];
	int status = 0;

	k->workers[kind] = 0;
	if (pid <= 0)
		return 0;
	/* If the worker has already died, its status stays as it was. */
	kill(pid, SIGKILL);
	for (uint64_t ns = 0; ns < END_NS; ns += STEP_NS) {
		if (waitpid(pid, &status, WNOHANG))
			return status;
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
	}
	k->hung[k->hung_len++] = pid;
	return 0;
}

/* Whether there may be another worker. Those for files of root have some places of their own. */
static bool may_start(const struct keeper *k, uint32_t kind)
{
	const bool of_root = kind == FILEKEEPER_PROGRAMS_OF_ROOT ||
			     kind == FILEKEEPER_SECOND_OF_ROOT || kind == FILEKEEPER_CODE_OF_ROOT;

	return k->hung_len < (of_root ? FILEKEEPER_HUNG : FILEKEEPER_HUNG_OF_OTHERS);
}

static void keep(struct keeper *k)
{
	struct filekeeper_ask a;

	for (;;) {
		const ssize_t n = recv(KEEPER_SOCKET, &a, sizeof(a), 0);
		struct filekeeper_answer said = { 0 };
		int socket = -1;

		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(a) || a.kind >= FILEKEEPER_KINDS)
			return; /* the workers end when the keeper does */

		if (a.what == FILEKEEPER_CLOCK) {
			said.cpu_ns = clock_cpu_ns(k->workers[a.kind]);
		} else {
			reap_hung(k);
			const int status = end_worker(k, a.kind);

			said.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
			if (may_start(k, a.kind))
				k->workers[a.kind] = start_worker(k, &a, &socket);
		}
		if (!keeper_answer(&said, sizeof(said), socket))
			return;
	}
}

int filekeeper_start(const struct filekeeper_class *programs, const struct filekeeper_class *code,
		     uint64_t heap, int *ret_control)
{
	const struct seccomp_rule *const lists[] = { baseline_calls, programs->calls, code->calls,
						     keeper_calls, own_calls };
	/* Close stderr: the last messages of libdw and libc contain hostile bytes, and do not help
	 * a user. Keep it for the report of a sanitizer, which helps developers. */
	const bool silent = !WORKERCELL_ASAN;
	int socket;
	const pid_t pid = keeper_fork(&socket);

	if (pid < 0)
		return pid;
	if (pid == 0) {
		keeper_ignore_signals();
		prctl(PR_SET_NAME, "prof-symd-keep", 0, 0, 0);
		int r = keeper_hold(&socket, 1, silent);

		/* If the kernel has only one of the two, that must be enough. */
		if (!r)
			r = landlock_enter(LANDLOCK_NOTHING, NULL);
		if (!r || r == -EOPNOTSUPP)
			r = seccomp_enter(lists, sizeof(lists) / sizeof(lists[0]), false);
		if (!r || r == -EOPNOTSUPP)
			keep(&(struct keeper){ .programs = programs, .code = code, .heap = heap });
		_exit(r ? EXITS_FAILED : EXITS_DONE);
	}
	*ret_control = socket;
	return 0;
}

/* --- for the process that uses the keeper --- */

#define START_NS 2000000000ull

static struct {
	bool used, gone;
	int control;
} host;

void filekeeper_use(int control)
{
	host.used = true;
	host.control = control;
}

bool filekeeper_in_use(void)
{
	return host.used;
}

bool filekeeper_gone(void)
{
	return host.gone;
}

int filekeeper_wait(int fd, short events, uint64_t deadline_ns)
{
	for (;;) {
		const uint64_t now_ns = clock_mono_ns();
		const uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
		struct pollfd p = { .fd = fd, .events = events };
		/* Poll once even after the deadline: this process itself may have been stopped. */
		const int n = poll(&p, 1, left_ns ? (int)(left_ns / 1000000 + 1) : 0);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && !left_ns)
			return -ETIMEDOUT;
	}
}

int filekeeper_wait_for(int fd, enum filekeeper_kind kind, uint64_t deadline_ns)
{
	uint64_t cpu_ns = 0;
	unsigned still = 0;

	for (;;) {
		const uint64_t next_ns = numbers_smaller(clock_mono_ns() + FILEKEEPER_LOOK_NS,
							 deadline_ns);
		const int r = filekeeper_wait(fd, POLLIN, next_ns);

		if (r != -ETIMEDOUT || next_ns == deadline_ns)
			return r;
		const uint64_t then_ns = cpu_ns;

		cpu_ns = filekeeper_clock(kind);
		if (cpu_ns != then_ns)
			still = 0;
		else if (clock_mono_ns() - next_ns < FILEKEEPER_PUNCTUAL_NS)
			still++;
		if (still == FILEKEEPER_STILL)
			return -EDEADLK;
	}
}

/* Sends a request to the keeper and waits for the answer. After the keeper was silent once, it is
 * not waited for again: that would hold up all naming. *ret_fd is -1 if no descriptor came. */
static int ask(const struct filekeeper_ask *a, struct filekeeper_answer *ret, int *ret_fd)
{
	int r = host.gone ? -EPIPE : 0;

	if (!r && send(host.control, a, sizeof(*a), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(*a))
		r = -EPIPE;
	if (!r)
		r = filekeeper_wait(host.control, POLLIN, clock_mono_ns() + START_NS);
	if (!r &&
	    scm_receive(host.control, ret, sizeof(*ret), ret_fd, 1, MSG_DONTWAIT) != sizeof(*ret))
		r = -EPIPE;
	host.gone |= r != 0;
	return r;
}

int filekeeper_worker(enum filekeeper_kind kind, uint64_t heap, bool *ret_killed)
{
	const struct filekeeper_ask a = { .what = FILEKEEPER_START, .heap = heap, .kind = kind };
	struct filekeeper_answer answer;
	int fd;
	const int r = ask(&a, &answer, &fd);

	*ret_killed = r == 0 && answer.killed;
	return r ? r : fd >= 0 ? fd : -EAGAIN;
}

uint64_t filekeeper_clock(enum filekeeper_kind kind)
{
	const struct filekeeper_ask a = { .what = FILEKEEPER_CLOCK, .kind = kind };
	struct filekeeper_answer answer;
	int fd;

	if (ask(&a, &answer, &fd))
		return 0;
	if (fd >= 0)
		close(fd);
	return answer.cpu_ns;
}
