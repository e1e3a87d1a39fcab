/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarfkeeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/cell/baseline.h"
#include "common/cell/landlock.h"
#include "common/names/dwarf/dwarfworker.h"
#include "common/wire/scm.h"

#define SOCKET 3 /* the only descriptor of keeper and worker above stderr */

#define NO_CHILD \
	(CLONE_VM | CLONE_THREAD | CLONE_PARENT | CLONE_PTRACE | CLONE_UNTRACED | CLONE_NEWUSER | \
	 CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)

static const struct seccomp_rule keeper_calls[] = {
	CALL("sendmsg"),
	CALL("recvfrom"),
	CALL_IF("socketpair", SECCOMP_IS(0, AF_UNIX)),
	CALL("close_range"),
	CALL("dup3"),
	/* To start a process, but no thread or namespace. */
	CALL_IF("clone", SECCOMP_CLEAR(0, NO_CHILD)),
	CALL("fork"),
	CALL_IF("kill", SECCOMP_IS(1, SIGKILL)),   /* the worker; nobody else has this user */
	CALL_IF("tgkill", SECCOMP_IS(2, SIGABRT)), /* the worker's abort() */
	CALL("wait4"),
	CALL("getppid"),
	/* A new worker sets its death signal, list of calls, and limits. */
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_PDEATHSIG)),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_SECCOMP)),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_NO_NEW_PRIVS)),
	CALL_IF("seccomp", SECCOMP_CLEAR(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)),
	CALL_FAILS_IF("seccomp", EINVAL, SECCOMP_SET(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)),
	CALL_IF("prlimit64", SECCOMP_IS(0, 0)),
	CALL("getrlimit"),
	CALL("setrlimit"),
	CALL("setitimer"), /* the worker's timer, set before it enters its own list */
	CALLS_END,
};

/* Neither process outlives its parent. */
static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(0);
}

/* Sends stderr to a pipe that nobody reads. The last words of libdw and libc contain hostile bytes,
 * and tell a user nothing. A pipe, because /dev/null does not exist in each cell. The report of a
 * sanitizer is for us, so it stays. */
static int say_nothing(void)
{
	int nowhere[2];

	if (DWARFWORKER_ASAN)
		return 0;
	if (pipe2(nowhere, O_CLOEXEC))
		return -errno;
	const int r = dup2(nowhere[1], STDERR_FILENO) < 0 ? -errno : 0;

	close(nowhere[0]);
	close(nowhere[1]);
	return r;
}

/* Closes all descriptors but socket, which becomes SOCKET, and stderr. stdin and stdout become
 * copies of stderr. */
static int keep_only(int socket)
{
	const int high = socket > SOCKET ? socket : fcntl(socket, F_DUPFD_CLOEXEC, SOCKET + 1);

	if (high < 0 || dup3(high, SOCKET, O_CLOEXEC) < 0)
		return -errno;
	for (int fd = STDIN_FILENO; fd < STDERR_FILENO; fd++)
		if (dup2(STDERR_FILENO, fd) < 0)
			close(fd);
	return close_range(SOCKET + 1, ~0u, 0) ? -errno : 0;
}

static pid_t start_worker(uint64_t heap, pid_t keeper, int *ret_socket)
{
	int pair[2];
	pid_t pid = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	pid = fork();
	if (pid == 0) {
		die_with(keeper);
		if (dup3(pair[1], SOCKET, O_CLOEXEC) < 0 || close_range(SOCKET + 1, ~0u, 0))
			_exit(1);
		dwarfworker_run(SOCKET, heap);
	}
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		*ret_socket = pair[0];
	return pid;
}

/* Answers a request. Takes fd; -1: no worker could be started. status: of the previous worker. */
static bool answer(int fd, int status)
{
	const char byte = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? DWARFKEEPER_KILLED
									     : DWARFKEEPER_PLAIN;
	const ssize_t n = scm_send(SOCKET, &byte, 1, &fd, fd >= 0, 0);

	if (fd >= 0)
		close(fd);
	return n == 1;
}

static void keep(uint64_t most)
{
	const pid_t keeper = getpid();
	pid_t worker = -1;
	uint64_t heap;

	for (;;) {
		const ssize_t n = recv(SOCKET, &heap, sizeof(heap), 0);
		int socket = -1, status = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (worker > 0) {
			/* The status of a worker that had already died stays as it was. */
			kill(worker, SIGKILL);
			waitpid(worker, &status, 0);
		}
		if (n != sizeof(heap))
			return;
		worker = start_worker(heap < most ? heap : most, keeper, &socket);
		if (!answer(socket, status))
			return; /* the worker ends with the keeper */
	}
}

/* Ctrl-C reaches all processes of a terminal. These ignore it, since they end with prof-symd. They
 * also reset prof-symd's handlers for its last word (lastword.h). */
static void set_signals(void)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	sigset_t none;

	for (int i = 1; i < SIGRTMIN; i++)
		signal(i, SIG_DFL);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int dwarfkeeper_start(uint64_t heap, int *ret_control)
{
	const struct seccomp_rule *const lists[] = { baseline_calls, dwarfworker_calls,
						     keeper_calls };
	const pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	const pid_t pid = fork();

	if (pid < 0) {
		const int r = -errno;

		close(pair[0]);
		close(pair[1]);
		return r;
	}
	if (pid == 0) {
		die_with(parent);
		set_signals();
		prctl(PR_SET_NAME, "prof-symd-dwarf", 0, 0, 0);
		int r = say_nothing();

		if (!r)
			r = keep_only(pair[1]);
		/* If the kernel has only one of the two, that must be enough. */
		if (!r)
			r = landlock_enter(LANDLOCK_NOTHING, NULL);
		if (!r || r == -EOPNOTSUPP)
			r = seccomp_enter(lists, 3, false);
		if (!r || r == -EOPNOTSUPP)
			keep(heap);
		_exit(r ? 1 : 0);
	}
	close(pair[1]);
	*ret_control = pair[0];
	return 0;
}
