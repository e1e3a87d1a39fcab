/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists were made by looking (strace over every format, Debian 12's and later libcs), and hold
 * what libc and nng call besides: clocks where the vDSO has none, what a new thread begins with,
 * what qsort and malloc ask. What libc does without when it is refused fails; the rest kills.
 */
#include "common/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/landlock.h"
#include "common/seccomp.h"

#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN true
#else
#define UNDER_ASAN false
#endif

#define CALL_FAILS_IF(name, errno_, ...) \
	{ \
		.call = (name), .error = (errno_), .args = { __VA_ARGS__ } \
	}
/* TCGETS2, by which glibc 2.42 and later ask for a terminal; its header and libc's exclude each
 * other. */
#define TERMINAL_2 _IOC(_IOC_READ, 'T', 0x2a, 44)
#define WRITES (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)
#define NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)

/* Memory, clocks, threads that are there, and descriptors that are open. */
static const struct seccomp_rule living[] = {
	CALL("brk"),
	CALL_IF("mmap", SECCOMP_CLEAR(2, PROT_EXEC), SECCOMP_SET(3, MAP_ANONYMOUS)),
	CALL_IF("mprotect", SECCOMP_CLEAR(2, PROT_EXEC)),
	CALL("mremap"),
	CALL("munmap"),
	CALL("madvise"),
	CALL("sysinfo"),
	CALL("getrandom"),

	CALL("futex"),
	CALL("set_robust_list"),
	CALL("rseq"),
	CALL("sched_yield"),
	CALL("sched_getaffinity"),
	CALL("rt_sigaction"),
	CALL("rt_sigprocmask"),
	CALL("rt_sigreturn"),
	CALL("sigaltstack"),
	CALL("restart_syscall"),
	CALL("exit"),
	CALL("exit_group"),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_NAME)),
	CALL("getpid"),
	CALL("gettid"),

	CALL("clock_gettime"),
	CALL("clock_getres"),
	CALL("clock_nanosleep"),
	CALL("nanosleep"),
	CALL("gettimeofday"),
	CALL("time"),

	CALL("read"),
	CALL("readv"),
	CALL("pread64"),
	CALL("write"),
	CALL("writev"),
	CALL("lseek"),
	CALL("close"),
	CALL("fstat"),
	CALL_IF("newfstatat", SECCOMP_SET(3, AT_EMPTY_PATH)),
	CALL_IF("statx", SECCOMP_SET(2, AT_EMPTY_PATH)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_GETFD)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_SETFD)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_GETFL)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_SETFL)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_DUPFD_CLOEXEC)),
	CALL("poll"),
	CALL("ppoll"),
	CALL("epoll_ctl"),
	CALL("epoll_wait"),
	CALL("epoll_pwait"),
	CALL_IF("ioctl", SECCOMP_IS(1, TCGETS)),
	CALL_IF("ioctl", SECCOMP_IS(1, TERMINAL_2)),

	CALL_FAILS_IF("prctl", EINVAL, SECCOMP_IS(0, PR_SET_VMA)),
	CALL_FAILS("membarrier", ENOSYS),
	CALL_FAILS("futex_waitv", ENOSYS),
	CALL_FAILS("clone3", ENOSYS),
	CALLS_END,
};

/* Sockets that are connected, to peers and to who runs libdw for prof-symd; and the page that comes
 * over one (lastword.h). */
static const struct seccomp_rule talking[] = {
	CALL("sendmsg"),
	CALL("sendto"),
	CALL("recvmsg"),
	CALL("recvfrom"),
	CALL("getsockopt"),
	CALL("shutdown"),
	CALL("getsockname"),
	CALL_IF("mmap", SECCOMP_CLEAR(2, PROT_EXEC), SECCOMP_IS(3, MAP_SHARED)),
	CALLS_END,
};

/* prof-export's next peer, after the first one went. */
static const struct seccomp_rule taking_peers[] = {
	CALL("accept"),
	CALL("accept4"),
	CALLS_END,
};

static const struct seccomp_rule writing_files[] = {
	CALL("ftruncate"),
	CALLS_END,
};

static const struct seccomp_rule making_files[] = {
	CALL("memfd_create"),
	CALL("pwrite64"),
	CALLS_END,
};

/* Sockets that are to be opened, and nng's threads; then the second step itself. */
static const struct seccomp_rule opening_sockets[] = {
	CALL_IF("socket", SECCOMP_IS(0, AF_UNIX)),
	CALL("connect"),
	CALL("setsockopt"),
	CALL("epoll_create1"),
	CALL("eventfd2"),
	CALL("pipe2"),
	CALL_IF("clone", { .number = 0, .mask = THREAD | NAMESPACES, .value = THREAD }),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_SECCOMP)),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_NO_NEW_PRIVS)),
	CALL("seccomp"),
	CALL("landlock_create_ruleset"),
	CALL("landlock_restrict_self"),
	CALL("wait4"),
	CALLS_END,
};

static const struct seccomp_rule opening_a_listener[] = {
	CALL("bind"), CALL("listen"), CALL("chmod"), CALL("fchmodat"), CALL("unlink"), CALLS_END,
};

/* What libc tries when there is something to be read, and nng at its end. */
static const struct seccomp_rule no_paths[] = {
	CALL_FAILS("open", EACCES),
	CALL_FAILS("openat", EACCES),
	CALL_FAILS("access", EACCES),
	CALL_FAILS("faccessat", EACCES),
	CALL_FAILS("faccessat2", EACCES),
	CALL_FAILS("readlink", EACCES),
	CALL_FAILS("readlinkat", EACCES),
	CALL_FAILS("stat", EACCES),
	CALL_FAILS("lstat", EACCES),
	CALL_FAILS_IF("newfstatat", EACCES, SECCOMP_CLEAR(3, AT_EMPTY_PATH)),
	CALL_FAILS_IF("statx", EACCES, SECCOMP_CLEAR(2, AT_EMPTY_PATH)),
	CALLS_END,
};

static const struct seccomp_rule no_unlink[] = {
	CALL_FAILS("unlink", EACCES),
	CALL_FAILS("unlinkat", EACCES),
	CALLS_END,
};

/* By hand: files by their paths, to be read. */
static const struct seccomp_rule reading_paths[] = {
	CALL_IF("open", SECCOMP_CLEAR(1, WRITES)),
	CALL_IF("openat", SECCOMP_CLEAR(2, WRITES)),
	CALL("access"),
	CALL("faccessat"),
	CALL("faccessat2"),
	CALL("readlink"),
	CALL("readlinkat"),
	CALL("stat"),
	CALL("lstat"),
	CALL_IF("newfstatat", SECCOMP_CLEAR(3, AT_EMPTY_PATH)),
	CALL_IF("statx", SECCOMP_CLEAR(2, AT_EMPTY_PATH)),
	CALL_IF("mmap", SECCOMP_CLEAR(2, PROT_EXEC), SECCOMP_CLEAR(3, MAP_ANONYMOUS)),
	CALL("getdents64"),
	CALL("statfs"),
	CALL("fstatfs"),
	CALL("getcwd"),
	CALL("uname"),
	CALL("getuid"),
	CALL("geteuid"),
	CALL("getgid"),
	CALL("getegid"),
	CALL("fadvise64"),
	CALLS_END,
};

static const struct seccomp_rule reading_below[] = {
	CALL("openat2"),
	CALLS_END,
};

static const struct seccomp_rule removing_files[] = {
	CALL("unlink"),
	CALLS_END,
};

/* Signals to itself: abort says of what it died. */
struct itself {
	struct seccomp_rule rules[2];
};

static struct itself itself(void)
{
	return (struct itself){ { CALL_IF("tgkill", SECCOMP_IS(0, getpid())), CALLS_END } };
}

#define COUNT(lists) (sizeof(lists) / sizeof((lists)[0]))

/* What the kernel lacks is lived with. */
static int enter_landlock(struct cell *c, enum landlock_rights rights, const char *folder)
{
	const int version = landlock_version();

	if (UNDER_ASAN || version < 0)
		return 0;
	c->landlock = version;
	return landlock_enter(rights, folder);
}

static int enter_calls(struct cell *c, const struct seccomp_rule *const lists[], size_t count,
		       bool all_threads)
{
	const int r = seccomp_enter(lists, count, all_threads);

	c->calls = r == 0 && !UNDER_ASAN;
	return r == -EOPNOTSUPP ? 0 : r;
}

void cell_prepare(struct cell *c, const char *folder, bool user)
{
	c->place = EMPTYROOT_NONE;
	if (!UNDER_ASAN)
		(void)emptyroot_prepare(&c->place, folder, user);
}

int cell_enter(struct cell *c, const char *own)
{
	const struct itself self = itself();
	const struct seccomp_rule *const lists[] = {
		living,
		self.rules,
		talking,
		opening_sockets,
		no_paths,
		c->listens ? opening_a_listener : no_unlink,
		c->listens ? taking_peers : NULL,
		c->writes ? writing_files : NULL,
		c->makes ? making_files : NULL,
	};

	c->root = emptyroot_enter(&c->place) == 0;
	const int r = enter_landlock(c, own ? LANDLOCK_SOCKETS : LANDLOCK_NO_FILES, own);

	return r ? r : enter_calls(c, lists, COUNT(lists), false);
}

int cell_seal(struct cell *c)
{
	const struct itself self = itself();
	const struct seccomp_rule *const lists[] = {
		living,
		self.rules,
		talking,
		no_paths,
		no_unlink,
		c->listens ? taking_peers : NULL,
		c->writes ? writing_files : NULL,
		c->makes ? making_files : NULL,
	};

	if (c->root)
		c->root = emptyroot_close(&c->place) == 0;
	const int r = enter_landlock(c, LANDLOCK_NOTHING, NULL);

	return r ? r : enter_calls(c, lists, COUNT(lists), true);
}

int cell_by_hand(enum cell_hand how, const char *folder)
{
	const struct itself self = itself();
	const bool writes = how == CELL_WRITES;
	const struct seccomp_rule *const lists[] = {
		living,
		self.rules,
		writes ? no_paths : reading_paths,
		writes ? removing_files : no_unlink,
		writes ? writing_files : making_files,
		how == CELL_READS_BELOW ? reading_below : NULL,
		writes ? NULL : talking,
	};
	struct cell c = { 0 };
	int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	/* Who opens files by any path may look into other processes', which Landlock forbids. */
	if (!r && writes)
		r = enter_landlock(&c, folder ? LANDLOCK_REMOVE : LANDLOCK_NOTHING, folder);
	return r ? r : enter_calls(&c, lists, COUNT(lists), false);
}
