/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/wire/bus/scm.h"

#define HELD_MAX 32
#define NO_CHILD \
	(CLONE_VM | CLONE_THREAD | CLONE_PARENT | CLONE_PTRACE | CLONE_UNTRACED | CLONE_NEWUSER | \
	 CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)

const struct seccomp_rule keeper_calls[] = {
	CALL("sendmsg"),
	CALL("recvfrom"),
	CALL_IF("socketpair", SECCOMP_IS(0, AF_UNIX)),
	CALL("close_range"),
	CALL("dup3"),
	/* Starts a process, but no thread or namespace. */
	CALL_IF("clone", SECCOMP_CLEAR(0, NO_CHILD)),
	CALL("fork"),
	CALL_IF("kill", SECCOMP_IS(1, SIGKILL)), /* ends a worker */
	CALL("wait4"),
	CALL("getppid"),
	/* A new worker sets its death signal and installs its own filter. */
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_PDEATHSIG)),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_SECCOMP)),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_NO_NEW_PRIVS)),
	CALL_IF("seccomp", SECCOMP_CLEAR(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)),
	CALL_FAILS_IF("seccomp", EINVAL, SECCOMP_SET(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)),
	SECCOMP_END,
};

pid_t keeper_fork(int *ret_socket)
{
	const pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	const pid_t pid = fork();
	const int r = pid < 0 ? -errno : pid;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent)
			_exit(EXITS_DONE);
	}
	if (pid != 0)
		close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		*ret_socket = pair[pid == 0];
	return r;
}

static int close_from(unsigned first)
{
	return close_range(first, ~0u, 0) ? -errno : 0;
}

int keeper_hold(const int *fds, unsigned n, bool stderr_too)
{
	int high[HELD_MAX], nowhere[2];
	const int last = stderr_too ? STDERR_FILENO : STDOUT_FILENO;

	if (n > HELD_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, KEEPER_SOCKET + HELD_MAX);
		if (high[i] < 0)
			return -errno;
	}
	if (pipe2(nowhere, O_CLOEXEC))
		return -errno;
	for (int fd = STDIN_FILENO; fd <= last; fd++)
		if (dup2(nowhere[1], fd) < 0)
			return -errno;
	for (unsigned i = 0; i < n; i++)
		if (dup3(high[i], KEEPER_SOCKET + (int)i, O_CLOEXEC) < 0)
			return -errno;
	return close_from(KEEPER_SOCKET + n);
}

int keeper_hold_as_worker(int socket, unsigned n)
{
	if (dup3(socket, KEEPER_SOCKET, O_CLOEXEC) < 0)
		return -errno;
	return close_from(KEEPER_SOCKET + n);
}

void keeper_ignore_signals(void)
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

bool keeper_answer(const void *answer, size_t size, int fd)
{
	const ssize_t n = scm_send(KEEPER_SOCKET, answer, size, &fd, fd >= 0, 0);

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)size;
}
