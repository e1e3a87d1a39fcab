/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/workercell.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/cell/confine/baseline.h"
#include "common/cell/confine/sandbox.h"

/* Seconds of cpu time that the current request has left; 0: there is no request. */
static volatile sig_atomic_t left_s;

/* The signal handler that runs after each second of cpu time. */
static void on_second(int number)
{
	if (left_s > 0 && --left_s == 0)
		_exit(EXITS_FAILED);
}

/* One second more, since the current second may be almost over. */
void workercell_begin(unsigned cpu_s)
{
	left_s = (sig_atomic_t)cpu_s + 1;
}

void workercell_end(void)
{
	left_s = 0;
}

/* Sets a timer that needs no further system call, and a limit that no system call can raise. */
static int watch_time(unsigned life_s)
{
	const struct itimerval second = { .it_interval.tv_sec = 1, .it_value.tv_sec = 1 };
	const struct sigaction tick = { .sa_handler = on_second, .sa_flags = SA_RESTART };
	const int r = sandbox_lower(RLIMIT_CPU, life_s);

	if (r)
		return r;
	return sigaction(SIGPROF, &tick, NULL) || setitimer(ITIMER_PROF, &second, NULL) ? -errno
											: 0;
}

void workercell_enter(const struct seccomp_rule *calls, uint64_t heap, unsigned life_s)
{
	const struct seccomp_rule itself[] = {
		/* abort() */
		CALL_IF("tgkill", SECCOMP_IS(0, getpid()), SECCOMP_IS(2, SIGABRT)),
		SECCOMP_END,
	};
	const struct seccomp_rule *const lists[] = { baseline_calls, calls, itself };
	int r = WORKERCELL_ASAN ? 0 : sandbox_lower(RLIMIT_DATA, heap);

	if (!r)
		r = watch_time(life_s);
	if (!r)
		r = seccomp_enter(lists, 3, false);
	if (r && r != -EOPNOTSUPP)
		_exit(EXITS_FAILED);
}
