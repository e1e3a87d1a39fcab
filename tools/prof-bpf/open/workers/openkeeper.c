/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/workers/openkeeper.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/cell/confine/baseline.h"
#include "common/cell/confine/sandbox.h"
#include "common/cell/keeper.h"
#include "tools/prof-bpf/open/workers/worker.h"

/* Descriptors of the keeper and its workers besides the socket. */
enum { PROC = KEEPER_SOCKET + 1, HELD = 2 };

#define KEPT 128 /* workers, including those that hang */

/* Calls of the keeper, and of a new worker before it enters its own list. */
static const struct seccomp_rule own_calls[] = {
	CALL("capget"),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_NAME)),
	SECCOMP_END,
};

/* Calls that a worker makes once, before its first request. */
static const struct seccomp_rule start_calls[] = { CALL("capget"), SECCOMP_END };

static void be_worker(int socket)
{
	const struct seccomp_rule *const lists[] = { baseline_calls, worker_calls, start_calls };

	prctl(PR_SET_NAME, "prof-bpf-open", 0, 0, 0);
	if (keeper_hold_as_worker(socket, HELD))
		_exit(EXITS_FAILED);
	const int r = seccomp_enter(lists, sizeof(lists) / sizeof(lists[0]), false);

	if (r && !seccomp_is_missing(r))
		_exit(EXITS_FAILED);
	malloc_trim(0);
	_exit(worker_serve(KEEPER_SOCKET, PROC));
}

/* --- the keeper --- */

static pid_t workers[KEPT]; /* those that have not been waited for */

static void reap(void)
{
	for (unsigned i = 0; i < KEPT; i++)
		if (workers[i] > 0 && waitpid(workers[i], NULL, WNOHANG) != 0)
			workers[i] = 0;
}

static struct openkeeper_answer start_worker(int *ret_socket)
{
	unsigned at = 0;

	while (at < KEPT && workers[at])
		at++;
	if (at == KEPT)
		return (struct openkeeper_answer){ .error = -EAGAIN };
	const pid_t pid = keeper_fork(ret_socket);

	if (pid == 0)
		be_worker(*ret_socket);
	if (pid < 0)
		return (struct openkeeper_answer){ .error = pid };
	workers[at] = pid;
	return (struct openkeeper_answer){ .pid = pid };
}

static void end_worker(pid_t pid)
{
	for (unsigned i = 0; i < KEPT; i++)
		if (pid > 0 && workers[i] == pid)
			kill(pid, SIGKILL);
}

static void keep(void)
{
	for (;;) {
		struct openkeeper_order o;
		const ssize_t n = recv(KEEPER_SOCKET, &o, sizeof(o), 0);
		int socket = -1;

		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(o))
			return;
		reap();
		if (o.what == OPENKEEPER_END) {
			end_worker(o.pid);
			continue;
		}
		const struct openkeeper_answer a = start_worker(&socket);

		if (!keeper_answer(&a, sizeof(a), socket))
			return;
	}
}

static void be_keeper(int socket, int proc)
{
	const struct seccomp_rule *const lists[] = { baseline_calls, worker_calls, keeper_calls,
						     own_calls };
	const int held[HELD] = { socket, proc };
	const char *step;

	keeper_ignore_signals();
	/* The scheduler may favour prof-bpf's session (priority_raise). */
	(void)setsid();
	prctl(PR_SET_NAME, "prof-bpf-keeper", 0, 0, 0);
	/* Close stderr: a worker that hangs must not keep prof-bpf's log open. */
	int r = keeper_hold(held, HELD, true);

	if (!r)
		r = sandbox_reduce(SANDBOX_OPEN_CAPS, &step);
	if (!r)
		r = seccomp_enter(lists, sizeof(lists) / sizeof(lists[0]), false);
	if (!r || seccomp_is_missing(r))
		keep();
	_exit(r ? EXITS_FAILED : EXITS_DONE);
}

int openkeeper_start(const char *proc_path, int *ret_socket, pid_t *ret_pid)
{
	const int proc = open(proc_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int socket;

	if (proc < 0)
		return -errno;
	const pid_t pid = keeper_fork(&socket);

	if (pid == 0)
		be_keeper(socket, proc);
	close(proc);
	if (pid < 0)
		return pid;
	(void)fcntl(socket, F_SETFL, O_NONBLOCK);
	*ret_socket = socket;
	*ret_pid = pid;
	return 0;
}
