/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/confine/baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include "common/base/system/clock.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)
#define NO_THREAD \
	(CLONE_PTRACE | CLONE_VFORK | CLONE_PARENT | CLONE_UNTRACED | CLONE_IO | CLONE_PIDFD | \
	 CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)
/* All flags of messages that we do not use. MSG_OOB had security holes, and other flags may have
 * some too. */
#define ODD \
	(UINT32_MAX & \
	 ~(uint32_t)(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_TRUNC | MSG_CMSG_CLOEXEC | MSG_WAITALL))

const struct seccomp_rule baseline_calls[] = {
	CALL("brk"),
	/* No huge pages: they are a scarce resource of the host. */
	CALL_IF("mmap", SECCOMP_CLEAR(2, PROT_EXEC),
		SECCOMP_BITS(3, MAP_ANONYMOUS | MAP_HUGETLB, MAP_ANONYMOUS)),
	CALL_IF("mprotect", SECCOMP_CLEAR(2, PROT_EXEC)),
	CALL("mremap"),
	CALL("munmap"),
	CALL("madvise"),
	CALL("sysinfo"), /* qsort */
	CALL("getrandom"),

	/* No futex operations with an owner: there the kernel takes a thread id from memory that we
	 * write, and it could be that of any process. The first two rules also allow _WAKE and
	 * _WAKE_OP. */
	CALL_IF("futex", SECCOMP_BITS(1, FUTEX_CMD_MASK & ~1, FUTEX_WAIT)),
	CALL_IF("futex", SECCOMP_BITS(1, FUTEX_CMD_MASK & ~1, FUTEX_CMP_REQUEUE)),
	CALL_IF("futex", SECCOMP_BITS(1, FUTEX_CMD_MASK, FUTEX_REQUEUE)),
	CALL_IF("futex", SECCOMP_BITS(1, FUTEX_CMD_MASK, FUTEX_WAIT_BITSET)),
	CALL_IF("futex", SECCOMP_BITS(1, FUTEX_CMD_MASK, FUTEX_WAKE_BITSET)),
	CALL("set_robust_list"),
	CALL("rseq"),
	CALL("sched_yield"),
	CALL("rt_sigaction"),
	CALL("rt_sigprocmask"),
	CALL("rt_sigreturn"),
	CALL("sigaltstack"),
	CALL("restart_syscall"),
	CALL("exit"),
	CALL("exit_group"),
	CALL("getpid"),
	CALL("gettid"),

	/* Used if the vDSO has no clocks. A negative clock id would read the cpu time of another
	 * process, so it is refused. */
	CALL_IF("clock_gettime", SECCOMP_CLEAR(0, CLOCK_OTHERS)),
	CALL_IF("clock_getres", SECCOMP_CLEAR(0, CLOCK_OTHERS)),
	CALL_IF("clock_nanosleep", SECCOMP_CLEAR(0, CLOCK_OTHERS)),
	CALL("nanosleep"),
	CALL("gettimeofday"),
	CALL("time"),

	CALL("write"), /* also for libc's message before it aborts */
	CALL("close"),
	CALL("fstat"),
	CALL_IF("newfstatat", SECCOMP_SET(3, AT_EMPTY_PATH)), /* used as fstat by newer libcs */

	/* Newer libcs name their memory. The flags of clone3 are behind a pointer, where no filter
	 * can see them; libc falls back to clone. */
	CALL_FAILS_IF("prctl", EINVAL, SECCOMP_IS(0, PR_SET_VMA)),
	CALL_FAILS("clone3", ENOSYS),
	SECCOMP_END,
};

const struct seccomp_rule baseline_files[] = {
	CALL("read"),
	CALL("readv"),
	CALL("pread64"),
	CALL("writev"),
	CALL("lseek"),
	CALL_IF("fcntl", SECCOMP_IS(1, F_DUPFD_CLOEXEC)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_GETFD)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_SETFD)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_GETFL)),
	CALL("epoll_ctl"),
	CALL("epoll_wait"),
	CALL("epoll_pwait"),
	CALL("poll"),
	CALL("ppoll"),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_NAME)), /* sets the name of a thread */
	SECCOMP_END,
};

const struct seccomp_rule baseline_sockets[] = {
	CALL_IF("sendmsg", SECCOMP_CLEAR(2, ODD)),
	CALL_IF("sendto", SECCOMP_CLEAR(3, ODD), SECCOMP_CLEAR(4, UINT64_MAX)),
	CALL_IF("recvmsg", SECCOMP_CLEAR(2, ODD)),
	CALL_IF("recvfrom", SECCOMP_CLEAR(3, ODD)),
	CALL_IF("getsockopt", SECCOMP_IS(1, SOL_SOCKET), SECCOMP_IS(2, SO_ERROR)),
	CALL_IF("getsockopt", SECCOMP_IS(1, SOL_SOCKET), SECCOMP_IS(2, SO_PEERCRED)),
	CALL("shutdown"),
	SECCOMP_END,
};

const struct seccomp_rule baseline_threads[] = {
	CALL_IF("clone", SECCOMP_BITS(0, THREAD | NO_THREAD, THREAD)),
	SECCOMP_END,
};
