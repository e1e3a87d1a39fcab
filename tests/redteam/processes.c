/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
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

/* An answer proves that it can see the process. */
long see_cpus_of_it(void)
{
	uint64_t mask[128];

	return CALL(SYS_sched_getaffinity, takeover_orders->victim, sizeof(mask), mask);
}

/* The clock of a process's cpu time, as computed by clock_getcpuclockid(3). */
static long clock_of_it(void)
{
	return (long)(int)((~(uint32_t)takeover_orders->victim << 3) | 2);
}

long see_time_of_it(void)
{
	struct timespec t;

	return CALL(SYS_clock_gettime, clock_of_it(), &t);
}

long wait_for_time_of_it(void)
{
	const struct timespec t = { .tv_nsec = 1 };

	return CALL(SYS_clock_nanosleep, clock_of_it(), TIMER_ABSTIME, &t, NULL);
}

/* As if it held a lock of ours: the kernel looks for the process, and returns ESRCH if it does not
 * exist. */
long lock_by_it(void)
{
	uint32_t lock = (uint32_t)takeover_orders->victim;
	const struct timespec past = { .tv_nsec = 1 };
	const long r = CALL(SYS_futex, &lock, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, &past);

	return r == -ETIMEDOUT || r == -EPERM ? 0 : r;
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

/* Records for the test that the program ran: the process that was taken over is gone by then. */
static long shell(bool at)
{
	char sh[] = "sh", option[] = "-c", script[] = "echo ran >$0", ran[128];
	char *const argv[] = { sh, option, script, ran, NULL }, *const none[] = { NULL };

	append(ran, takeover_orders->ran);
	return at ? CALL(SYS_execveat, AT_FDCWD, "/bin/sh", argv, none, 0)
		  : CALL(SYS_execve, "/bin/sh", argv, none);
}

long run_shell(void)
{
	return shell(false);
}

long run_shell_at(void)
{
	return shell(true);
}

/* The child ends at once; its start is enough. */
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

long clone_a_shell(void)
{
	int status = 0;
	long r = CALL(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (r == 0)
		CALL(SYS_exit, shell(false) != 0);
	if (r > 0)
		r = CALL(SYS_wait4, r, &status, 0, 0);
	return r < 0 ? r : status ? -EPERM : 0;
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

AS_CALL(make_code_by_key, SYS_pkey_mprotect, page, 4096, PROT_READ | PROT_EXEC, -1)
AS_CALL(trace_me, SYS_ptrace, PTRACE_TRACEME, 0, 0, 0)
AS_CALL(let_all_trace, SYS_prctl, PR_SET_PTRACER, -1)
AS_CALL(adopt_orphans, SYS_prctl, PR_SET_CHILD_SUBREAPER, 1)
AS_CALL(group_it, SYS_setpgid, 0, 0)
AS_CALL(prioritize_disk_of_kin, SYS_ioprio_set, 1, takeover_orders->kin, 7 | 2 << 13)
AS_CALL(move_pages_of_it, SYS_move_pages, takeover_orders->victim, 1,
	&(uint64_t){ takeover_orders->address & ~4095ul }, 0, &(int){ 0 }, 0)

/* Through its file in /proc. */
long memory_file(void)
{
	char number[16], name[64], *digit = number + sizeof(number) - 1;

	*digit = '\0';
	for (int pid = takeover_orders->victim; pid; pid /= 10)
		*--digit = (char)('0' + pid % 10);
	append(append(append(name, "/proc/"), digit), "/mem");
	return CALL(SYS_openat, AT_FDCWD, name, O_RDWR);
}

long advise_memory_of_it(void)
{
	const struct iovec there = { (void *)(takeover_orders->address & ~4095ul), 4096 };
	const long fd = CALL(SYS_pidfd_open, takeover_orders->victim, 0);

	return fd < 0 ? fd : CALL(SYS_process_madvise, fd, &there, 1, MADV_COLD, 0);
}

long signal_by_pidfd(void)
{
	const long fd = CALL(SYS_pidfd_open, takeover_orders->victim, 0);

	return fd < 0 ? fd : CALL(SYS_pidfd_send_signal, fd, SIGCONT, 0, 0);
}

long signal_thread_with_value(void)
{
	siginfo_t i = { .si_signo = SIGCONT, .si_code = SI_QUEUE };
	const int pid = takeover_orders->victim;

	return CALL(SYS_rt_tgsigqueueinfo, pid, pid, SIGCONT, &i);
}

/* A descriptor that reports each call, and may answer in the kernel's place. */
long listen_to_calls(void)
{
	struct sock_filter pass = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	const struct sock_fprog program = { 1, &pass };

	return CALL(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		    &program);
}

/* --- a process of its own user, which it could trace --- */

AS_CALL(trace_kin, SYS_ptrace, PTRACE_SEIZE, takeover_orders->kin, 0, 0)
AS_CALL(signal_kin, SYS_kill, takeover_orders->kin, SIGCONT)
static const struct rlimit none;
AS_CALL(limit_kin, SYS_prlimit64, takeover_orders->kin, RLIMIT_CORE, &none, 0)
AS_CALL(schedule_kin, SYS_sched_setaffinity, takeover_orders->kin, 8, &(uint64_t){ 1 })
AS_CALL(renice_kin, SYS_setpriority, PRIO_PROCESS, takeover_orders->kin, 10)

static long move_kin(long call)
{
	char buffer[16] = "redteam";
	const struct iovec here = { buffer, sizeof(buffer) },
			   there = { (void *)takeover_orders->kin_address, 16 };

	return CALL(call, takeover_orders->kin, &here, 1, &there, 1, 0);
}

long read_kin(void)
{
	return move_kin(SYS_process_vm_readv);
}

long write_kin(void)
{
	return move_kin(SYS_process_vm_writev);
}

long take_descriptor_of_kin(void)
{
	const long fd = CALL(SYS_pidfd_open, takeover_orders->kin, 0);

	return fd < 0 ? fd : CALL(SYS_pidfd_getfd, fd, 0, 0);
}
