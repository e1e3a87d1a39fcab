/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of system calls come from strace runs of every format, with Debian 12's and later
 * libcs. They also have the calls of libc and nng. Calls that libc can do without fail with an
 * error; all others kill the process.
 */
#include "common/cell/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/cell/confine/baseline.h"
#include "common/cell/confine/landlock.h"
#include "common/cell/confine/sandbox.h"
#include "common/cell/confine/seccomp.h"

#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN true
#else
#define UNDER_ASAN false
#endif

/* TCGETS2, which glibc 2.42 and later use to detect a terminal. Its header cannot be included
 * together with libc's. */
#define TERMINAL_2 _IOC(_IOC_READ, 'T', 0x2a, 44)
#define SHARED_FLAGS (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME)

/* The calls of every tool in addition to the baseline. prof-bpf shares open files with a tool, and
 * so also the flags of these files. */
static const struct seccomp_rule living[] = {
	CALL_IF("sched_getaffinity", SECCOMP_IS(0, 0)), /* only its own */
	CALL_IF("statx", SECCOMP_SET(2, AT_EMPTY_PATH)),
	CALL_IF("fcntl", SECCOMP_IS(1, F_SETFL), SECCOMP_CLEAR(2, SHARED_FLAGS)),
	CALL_IF("ioctl", SECCOMP_IS(1, TCGETS)),
	CALL_IF("ioctl", SECCOMP_IS(1, TERMINAL_2)),
	CALL_FAILS("membarrier", ENOSYS),
	CALL_FAILS("futex_waitv", ENOSYS),
	SECCOMP_END,
};

/* Maps the page of lastword.h, which prof-bpf sends over a socket. */
static const struct seccomp_rule last_word[] = {
	CALL_IF("mmap", SECCOMP_CLEAR(2, PROT_EXEC), SECCOMP_IS(3, MAP_SHARED)),
	SECCOMP_END,
};

/* Accepts the next prof-symd after the first one is gone. */
static const struct seccomp_rule taking_peers[] = {
	CALL("accept"),
	CALL("accept4"),
	SECCOMP_END,
};

static const struct seccomp_rule writing_files[] = {
	CALL("ftruncate"),
	CALL_IF("fallocate", SECCOMP_IS(1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)),
	SECCOMP_END,
};

static const struct seccomp_rule making_files[] = {
	CALL("memfd_create"),
	CALL("pwrite64"),
	SECCOMP_END,
};

/* Opens sockets, starts nng's threads, and then seals the cell. */
static const struct seccomp_rule opening_sockets[] = {
	CALL_IF("socket", SECCOMP_IS(0, AF_UNIX)),
	CALL("connect"),
	CALL("setsockopt"),
	CALL("epoll_create1"),
	CALL("eventfd2"),
	CALL("pipe2"),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_SECCOMP)),
	CALL_IF("prctl", SECCOMP_IS(0, PR_SET_NO_NEW_PRIVS)),
	CALL("seccomp"),
	CALL("landlock_create_ruleset"),
	CALL("landlock_restrict_self"),
	CALL("wait4"),
	SECCOMP_END,
};

static const struct seccomp_rule opening_a_listener[] = {
	CALL("bind"), CALL("listen"), CALL("chmod"), CALL("fchmodat"), CALL("unlink"), SECCOMP_END,
};

/* libc tries these before it reads a file; nng uses them when it ends. */
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
	SECCOMP_END,
};

static const struct seccomp_rule no_unlink[] = {
	CALL_FAILS("unlink", EACCES),
	CALL_FAILS("unlinkat", EACCES),
	SECCOMP_END,
};

/* When run by hand: opens files by path, only for reading. */
static const struct seccomp_rule reading_paths[] = {
	CALL_IF("open", SECCOMP_CLEAR(1, SECCOMP_OPEN_WRITES)),
	CALL_IF("openat", SECCOMP_CLEAR(2, SECCOMP_OPEN_WRITES)),
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
	SECCOMP_END,
};

static const struct seccomp_rule reading_below[] = {
	CALL("openat2"),
	SECCOMP_END,
};

/* A process may signal itself, for abort: otherwise an abort would look like a forbidden system
 * call. */
struct itself {
	struct seccomp_rule rules[2];
};

static struct itself itself(void)
{
	return (struct itself){ { CALL_IF("tgkill", SECCOMP_IS(0, getpid())), SECCOMP_END } };
}

#define COUNT(lists) (sizeof(lists) / sizeof((lists)[0]))

/* A kernel without Landlock is not an error. */
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
		baseline_calls,
		baseline_files,
		living,
		self.rules,
		baseline_sockets,
		baseline_threads,
		last_word,
		opening_sockets,
		no_paths,
		c->listens ? opening_a_listener : no_unlink,
		c->listens ? taking_peers : NULL,
		c->writes ? writing_files : NULL,
		c->makes ? making_files : NULL,
	};

	c->root = emptyroot_enter(&c->place) == 0;
	const int r = enter_landlock(c, own ? LANDLOCK_SOCKETS : LANDLOCK_NO_FILES, own);

	return sandbox_report(NULL, r ? r : enter_calls(c, lists, COUNT(lists), false));
}

int cell_seal(struct cell *c)
{
	const struct itself self = itself();
	const struct seccomp_rule *const lists[] = {
		baseline_calls,
		baseline_files,
		living,
		self.rules,
		baseline_sockets,
		last_word,
		no_paths,
		no_unlink,
		c->listens ? taking_peers : NULL,
		c->writes ? writing_files : NULL,
		c->makes ? making_files : NULL,
	};

	if (c->root)
		c->root = emptyroot_close(&c->place) == 0;
	const int r = enter_landlock(c, LANDLOCK_NOTHING, NULL);

	return sandbox_report(NULL, r ? r : enter_calls(c, lists, COUNT(lists), true));
}

int cell_by_hand(enum cell_hand how)
{
	const struct itself self = itself();
	const bool writes = how == CELL_WRITES;
	const struct seccomp_rule *const lists[] = {
		baseline_calls,
		baseline_files,
		living,
		self.rules,
		writes ? no_paths : reading_paths,
		no_unlink,
		writes ? writing_files : making_files,
		how == CELL_READS_BELOW ? reading_below : NULL,
		writes ? NULL : baseline_sockets,
		writes ? NULL : last_word,
	};
	struct cell c = { 0 };
	int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	/* Not for tools that open files by any path: they may access other processes' files in
	 * /proc, which Landlock would prevent. */
	if (!r && writes)
		r = enter_landlock(&c, LANDLOCK_NOTHING, NULL);
	return sandbox_report(NULL, r ? r : enter_calls(&c, lists, COUNT(lists), false));
}
