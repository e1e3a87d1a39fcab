/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include "tests/redteam/attempts.h"

long trace(void)
{
	return CALL(SYS_ptrace, PTRACE_ATTACH, takeover_orders->victim, 0, 0);
}

long seize(void)
{
	return CALL(SYS_ptrace, PTRACE_SEIZE, takeover_orders->victim, 0, 0);
}

long read_memory(void)
{
	char buffer[16];
	struct iovec here = { buffer, sizeof(buffer) },
		     there = { (void *)takeover_orders->address, 16 };

	return CALL(SYS_process_vm_readv, takeover_orders->victim, &here, 1, &there, 1, 0);
}

long write_memory(void)
{
	char buffer[16] = "redteam";
	struct iovec here = { buffer, sizeof(buffer) },
		     there = { (void *)takeover_orders->address, 16 };

	return CALL(SYS_process_vm_writev, takeover_orders->victim, &here, 1, &there, 1, 0);
}

long signal_it(void)
{
	return CALL(SYS_kill, takeover_orders->victim, SIGCONT);
}

long signal_group(void)
{
	return CALL(SYS_kill, -takeover_orders->group, SIGCONT);
}

long signal_thread(void)
{
	return CALL(SYS_tkill, takeover_orders->victim, SIGCONT);
}

long signal_thread_of(void)
{
	return CALL(SYS_tgkill, takeover_orders->victim, takeover_orders->victim, SIGCONT);
}

long signal_with_value(void)
{
	siginfo_t i = { .si_signo = SIGCONT, .si_code = SI_QUEUE };

	return CALL(SYS_rt_sigqueueinfo, takeover_orders->victim, SIGCONT, &i);
}

long open_pidfd(void)
{
	return CALL(SYS_pidfd_open, takeover_orders->victim, 0);
}

long take_descriptor(void)
{
	const long fd = CALL(SYS_pidfd_open, takeover_orders->victim, 0);

	return fd < 0 ? fd : CALL(SYS_pidfd_getfd, fd, 0, 0);
}

long limit_it(void)
{
	struct rlimit l = { 0, 0 };

	return CALL(SYS_prlimit64, takeover_orders->victim, RLIMIT_CORE, &l, 0);
}

long see_limits(void)
{
	struct rlimit l;

	return CALL(SYS_prlimit64, takeover_orders->victim, RLIMIT_NOFILE, 0, &l);
}

long schedule_it(void)
{
	struct sched_param p = { 0 };

	return CALL(SYS_sched_setscheduler, takeover_orders->victim, SCHED_IDLE, &p);
}

long pin_it(void)
{
	uint64_t mask = 1;

	return CALL(SYS_sched_setaffinity, takeover_orders->victim, sizeof(mask), &mask);
}

long renice_it(void)
{
	return CALL(SYS_setpriority, PRIO_PROCESS, takeover_orders->victim, 10);
}

long compare_it(void)
{
	return CALL(SYS_kcmp, takeover_orders->victim, takeover_orders->victim, 0, 0, 0);
}

long robust_list_of_it(void)
{
	long head, len;

	return CALL(SYS_get_robust_list, takeover_orders->victim, &head, &len);
}

long run_shell(void)
{
	char shell[] = "sh", *const argv[] = { shell, NULL }, *const none[] = { NULL };

	return CALL(SYS_execve, "/bin/sh", argv, none);
}

long run_shell_at(void)
{
	char shell[] = "sh", *const argv[] = { shell, NULL }, *const none[] = { NULL };

	return CALL(SYS_execveat, AT_FDCWD, "/bin/sh", argv, none, 0);
}

/* The child ends at once; that it came to be is enough. */
static long child(long r)
{
	if (r == 0)
		CALL(SYS_exit, 0);
	return r;
}

long do_fork(void)
{
	return child(CALL(SYS_fork));
}

long do_clone(void)
{
	return child(CALL(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

long clone_into_namespaces(void)
{
	return child(CALL(SYS_clone, SIGCHLD | CLONE_NEWUSER | CLONE_NEWNS, 0, 0, 0, 0));
}

long do_clone3(void)
{
	struct clone_args a = { .exit_signal = SIGCHLD };

	return child(CALL(SYS_clone3, &a, sizeof(a)));
}

long map_code(void)
{
	const long at = CALL(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at < 0 && at > -4096 ? at : 0;
}

static char page[8192] __attribute__((aligned(4096)));

long make_code(void)
{
	return CALL(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC);
}
