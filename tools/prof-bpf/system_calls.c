/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/system_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/cell/confine/baseline.h"

/* Allowed calls besides those of all tools (baseline.h). */
static const struct seccomp_rule calls[] = {
	/* Reading and writing open files, beyond the common calls. */
	CALL("pwrite64"),
	CALL("ftruncate"),
	CALL("getdents64"),
	/* Opening for reading, and queries about files. */
	CALL_IF("openat", SECCOMP_CLEAR(2, SECCOMP_OPEN_WRITES)),
	CALL_IF("newfstatat", SECCOMP_CLEAR(3, AT_EMPTY_PATH)),
	CALL("statx"),
	CALL("statfs"),
	CALL("fstatfs"),
	CALL("readlink"),
	CALL("readlinkat"),
	CALL("access"),
	CALL("faccessat"),
	CALL("faccessat2"),
	CALL_IF("fcntl", SECCOMP_IS(1, F_SETFL)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_ADD_SEALS)),
	CALL("memfd_create"),
	/* To find out whether a copy of a file is still open anywhere. */
	CALL("flock"),
	/* BPF and perf events. */
	CALL_IF("bpf", SECCOMP_IS(0, BPF_MAP_CREATE)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_MAP_LOOKUP_ELEM)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_MAP_LOOKUP_BATCH)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_MAP_UPDATE_ELEM)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_MAP_DELETE_ELEM)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_OBJ_GET_INFO_BY_FD)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_ITER_CREATE)),
	CALL_IF("bpf", SECCOMP_IS(0, BPF_LINK_CREATE)),
	CALL_IF("ioctl", SECCOMP_IS(1, PERF_EVENT_IOC_ENABLE)),
	CALL_IF("ioctl", SECCOMP_IS(1, PERF_EVENT_IOC_DISABLE)),
	CALL_IF("ioctl", SECCOMP_IS(1, PERF_EVENT_IOC_SET_BPF)),
	/* Connections from peers, at existing sockets. */
	CALL("accept"),
	CALL("accept4"),
	CALL("getpeername"),
	/* Waiting. */
	CALL("epoll_create1"),
	CALL("eventfd2"),
	CALL("signalfd4"),
	CALL("timerfd_create"),
	CALL("timerfd_settime"),
	CALL("timerfd_gettime"),
	CALL("futex_waitv"),
	/* Memory that is not executable. */
	CALL_IF("mmap", SECCOMP_CLEAR(2, PROT_EXEC), SECCOMP_CLEAR(3, MAP_ANONYMOUS)),
	CALL("membarrier"),
	/* Identity and time, including the cpu time of the other tools. */
	CALL_IF("clock_gettime", SECCOMP_SET(0, CLOCK_OTHERS)),
	CALL("getppid"),
	CALL("getuid"),
	CALL("geteuid"),
	CALL("getgid"),
	CALL("getegid"),
	CALL("getcpu"),
	CALL("sched_getaffinity"),
	CALL("getrusage"),
	CALL("uname"),
	/* Reading limits, never setting them. */
	CALL_IF("prlimit64", SECCOMP_IS(0, 0), SECCOMP_CLEAR(2, UINT64_MAX)),
	CALL("getrlimit"),
	/* The kernel makes programs call these while their entries or returns are traced. */
	CALL_NUMBER("uretprobe", 335),
	CALL_NUMBER("uprobe", 336),
	SECCOMP_END,
};

int system_calls_enter(pid_t extractor, pid_t cpus)
{
	/* nng removes the names of its sockets when it ends. In a deployment, the launcher does
	 * that. */
	static const struct seccomp_rule deployed[] = { CALL_FAILS("unlink", EPERM), SECCOMP_END };
	const struct seccomp_rule by_hand[] = {
		CALL_IF("kill", SECCOMP_IS(0, extractor), SECCOMP_IS(1, SIGKILL)),
		CALL_IF("wait4", SECCOMP_IS(0, extractor)),
		CALL("unlink"),
		CALL("rmdir"),
		SECCOMP_END,
	};
	/* Allows abort(), so that it is reported as such. */
	const struct seccomp_rule own[] = {
		CALL_IF("tgkill", SECCOMP_IS(0, getpid()), SECCOMP_IS(2, SIGABRT)),
		CALL_IF("wait4", SECCOMP_IS(0, cpus ? cpus : getpid())),
		SECCOMP_END,
	};
	const struct seccomp_rule *const lists[] = { baseline_calls,
						     baseline_files,
						     baseline_sockets,
						     baseline_threads,
						     calls,
						     own,
						     extractor ? by_hand : deployed };

	return seccomp_enter(lists, sizeof(lists) / sizeof(lists[0]), true);
}
