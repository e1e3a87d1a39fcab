/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/late_loader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/cell/confine/baseline.h"
#include "common/cell/confine/sandbox.h"
#include "common/cell/keeper.h"
#include "tools/prof-bpf/kernel/runtimes.h"

static const struct seccomp_rule own_calls[] = {
	CALL("recvfrom"),
	CALL("sendmsg"),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_PROG_LOAD)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_BTF_LOAD)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_MAP_CREATE)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_MAP_UPDATE_ELEM)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_MAP_FREEZE)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_OBJ_GET_INFO_BY_FD)),
	/* libbpf duplicates descriptors of maps, and maps their contents. */
	CALL_IF("fcntl", SECCOMP_IS(1, F_DUPFD_CLOEXEC)),
	CALL("dup3"),
	CALL_IF("mmap", SECCOMP_CLEAR(2, PROT_EXEC)),
	/* libbpf opens / to get a free descriptor. */
	CALL_IF("openat", SECCOMP_CLEAR(2, SECCOMP_OPEN_WRITES)),
	CALL_FAILS("access", ENOENT),
	CALL_FAILS("faccessat", ENOENT),
	CALL_FAILS("faccessat2", ENOENT),
	CALL("uname"),
	SECCOMP_END,
};

/* Answers until prof-bpf closes the socket. */
static void serve(struct runtimes *r, const char *trouble)
{
	uint32_t which;

	for (;;) {
		const ssize_t n = recv(KEEPER_SOCKET, &which, sizeof(which), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(which))
			return;
		struct late_loader_answer a = { .runtime = which };

		a.result = runtimes_load(r, (enum runtime)which);
		if (a.result)
			snprintf(a.trouble, sizeof(a.trouble), "%s", trouble);
		malloc_trim(0);
		if (!keeper_answer(&a, sizeof(a), -1))
			return;
	}
}

static void be_loader(struct runtimes *runtimes, int socket, char *trouble)
{
	const struct seccomp_rule *const lists[] = { baseline_calls, own_calls };
	int held[1 + RUNTIMES_MAPS] = { socket };
	const char *step;

	keeper_ignore_signals();
	/* The scheduler may favour prof-bpf's session (priority_raise). */
	(void)setsid();
	prctl(PR_SET_NAME, "prof-bpf-loader", 0, 0, 0);
	trouble[0] = '\0';
	const unsigned maps = runtimes_maps(runtimes, held + 1);
	int r = keeper_hold(held, 1 + maps, true);

	runtimes_maps_moved(runtimes, KEEPER_SOCKET + 1);
	if (!r)
		r = sandbox_reduce(SANDBOX_LOAD_CAPS, &step);
	if (!r)
		r = seccomp_enter(lists, sizeof(lists) / sizeof(lists[0]), false);
	if (!r || seccomp_is_missing(r))
		serve(runtimes, trouble);
	_exit(r ? EXITS_FAILED : EXITS_DONE);
}

int late_loader_start(struct runtimes *runtimes, char *trouble, struct late_loader *ret)
{
	int socket;
	const pid_t pid = keeper_fork(&socket);

	*ret = LATE_LOADER_NONE;
	if (pid == 0)
		be_loader(runtimes, socket, trouble);
	if (pid < 0)
		return pid;
	(void)fcntl(socket, F_SETFL, O_NONBLOCK);
	*ret = (struct late_loader){ .pid = pid, .fd = socket };
	return 0;
}

static void lose(struct late_loader *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

int late_loader_ask(struct late_loader *l, enum runtime which)
{
	const uint32_t order = (uint32_t)which;

	if (l->fd < 0)
		return -EPIPE;
	return send(l->fd, &order, sizeof(order), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int late_loader_hear(struct late_loader *l, struct late_loader_answer *ret)
{
	if (l->fd < 0)
		return -EPIPE;
	const ssize_t n = recv(l->fd, ret, sizeof(*ret), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n == sizeof(*ret)) {
		ret->trouble[sizeof(ret->trouble) - 1] = '\0';
		return 0;
	}
	lose(l);
	return -EPIPE;
}

void late_loader_stop(struct late_loader *l)
{
	lose(l);
	l->pid = 0;
}
