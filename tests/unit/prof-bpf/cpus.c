/* SPDX-License-Identifier: Apache-2.0 */
/* prof-bpf's side of prof-cpus; the test holds the other end of the socket. */
#include "tools/prof-bpf/kernel/cpus.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/wire/bus/scm.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/kernel/sideband.h"

/* Of the other side, which does not run here. */
int loader_event_open(unsigned hz, bool cycles, unsigned cpu)
{
	abort();
}

int sideband_event_open(unsigned cpu, bool ksymbols)
{
	abort();
}

static int begin(struct cpus *c)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
		     0);
	*c = (struct cpus){ .fd = pair[0] };
	return pair[1];
}

static void give(int to, uint32_t cpu)
{
	const int fds[] = { STDERR_FILENO, STDERR_FILENO };

	cr_assert_eq(scm_send(to, &cpu, sizeof(cpu), fds, 2, MSG_DONTWAIT), sizeof(cpu));
}

static int next(struct cpus *c, uint32_t *ret_cpu)
{
	int fds[2] = { -1, -1 };
	const int r = cpus_next(c, ret_cpu, &fds[0], &fds[1]);

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(fds[i] >= 0, r == 0);
		if (fds[i] >= 0)
			cr_assert_eq(close(fds[i]), 0);
	}
	return r;
}

/* Leaves room for `more` descriptors above the open ones. */
static void leave_room(int above, unsigned more)
{
	const struct rlimit limit = { .rlim_cur = (rlim_t)above + 1 + more, .rlim_max = 4096 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

Test(cpus, each_new_cpu_is_taken_once)
{
	struct cpus c;
	uint32_t cpu = 0;
	const int other = begin(&c);

	cr_assert_eq(next(&c, &cpu), -EAGAIN);
	give(other, 5);
	give(other, 7);
	cr_assert(next(&c, &cpu) == 0 && cpu == 5);
	cr_assert(next(&c, &cpu) == 0 && cpu == 7);
	cr_assert_eq(next(&c, &cpu), -EAGAIN);
	cr_assert(!c.waits && c.fd >= 0);
	close(other);
	cpus_stop(&c);
}

Test(cpus, a_new_cpu_is_kept_until_there_is_room)
{
	struct cpus c;
	uint32_t cpu = 0;
	const int other = begin(&c);

	give(other, 5);
	/* No hole below. */
	int highest = dup(STDERR_FILENO);
	while (highest >= 0 && highest < 50)
		highest = dup(STDERR_FILENO);
	cr_assert_eq(highest, 50);
	for (unsigned room = 0; room < 2; room++) {
		leave_room(highest, room);
		cr_assert_eq(next(&c, &cpu), -EMFILE);
		cr_assert(c.waits && c.fd >= 0);
	}
	leave_room(highest, 2);
	cr_assert(next(&c, &cpu) == 0 && cpu == 5);
	cr_assert_eq(next(&c, &cpu), -EAGAIN);
	cr_assert(!c.waits);
	close(other);
	cpus_stop(&c);
}

Test(cpus, the_helpers_end_is_reported_once_and_it_is_reaped)
{
	struct cpus c;
	uint32_t cpu = 0;
	const int other = begin(&c);
	siginfo_t si;

	c.pid = fork();
	if (!c.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(other);
		for (;;)
			pause();
	}
	/* Its socket is closed first; the process may be reaped later. */
	close(other);
	cr_assert_eq(poll(&(struct pollfd){ .fd = c.fd, .events = POLLIN }, 1, 60000), 1);
	cr_assert_eq(next(&c, &cpu), -EAGAIN);
	cr_assert(c.waits && c.fd < 0);
	kill(c.pid, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)c.pid, &si, WEXITED | WNOWAIT), 0);
	cr_assert_eq(next(&c, &cpu), -EPIPE);
	cr_assert(WIFSIGNALED(c.wait_status) && WTERMSIG(c.wait_status) == SIGKILL);
	cr_assert(!c.waits && !c.pid);
	cr_assert_eq(next(&c, &cpu), -EAGAIN);
	cr_assert_eq(wait(NULL), -1);
}

Test(cpus, the_helper_understands_each_word_for_its_events)
{
	struct cpus_events got;

	for (unsigned i = 0; i < 4; i++) {
		const struct cpus_events e = { .cycles = i & 2, .ksymbols = i & 1 };

		cr_assert(cpus_events_parse(cpus_events_word(&e), &got));
		cr_assert_eq(got.cycles, e.cycles);
		cr_assert_eq(got.ksymbols, e.ksymbols);
	}
	cr_assert_not(cpus_events_parse("x", &got));
	cr_assert_not(cpus_events_parse("cycles+", &got));
	cr_assert_not(cpus_events_parse("cyclesx", &got));
}
