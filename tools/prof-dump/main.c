/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof-dump prints the stacks of a live process or a core file, with the walker that BPF runs.
 *
 * It consists of two processes of one binary:
 * - The first has the caller's rights. It opens files, stops threads and reads their registers. It
 *   parses only text that the kernel writes.
 * - The second is started by an exec of the same file, and enters a sandbox before it reads its
 *   first byte. It makes rows, walks the memory through a descriptor while the threads are stopped,
 *   and prints names after they continue.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/command/cmdline.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/reporting.h"
#include "common/base/command/stdfds.h"
#include "common/base/text/decimal.h"
#include "common/cell/cell.h"
#include "common/cell/confine/namespace.h"
#include "common/cell/confine/procroot.h"
#include "common/cell/confine/sandbox.h"
#include "common/cell/deploy.h"
#include "tools/prof-dump/caller.h"
#include "tools/prof-dump/process/lend.h"
#include "tools/prof-dump/walker.h"

#define NOBODY 65534
#define MAX_FILES 8192u
#define MAX_MEMORY (8ull << 30)
#define HALF_FD 3
#define LATE_MS 10

extern char **environ;

struct options {
	const char *what;
	const char *sysroot; /* NULL: the root */
	long pid;	     /* 0: `what` is the path of a core file */
	bool all, names, inlined, interpreter, half;
};

/* clang-format off */
static const char usage[] =
	"usage: prof-dump [-anv] [--no-inlines] [--interpreter-frames] [--sysroot DIR] PID|CORE\n"
	"\n"
	"Print the stacks of a process or of a core file.\n"
	"\n"
	"  -a, --all-threads   print every thread (default: the first one of a process, or the\n"
	"                      one of a core file that took the signal)\n"
	"  -n, --no-names      print native frames only, as numbers and addresses\n"
	"  --no-inlines        omit inlined calls\n"
	REPORTING_INTERPRETER_USAGE
	"  --sysroot DIR       look below DIR for the files that a core file names\n"
	"  -v, --verbose       report on standard error how long threads were stopped\n"
	CMDLINE_HELP_USAGE
	"\n"
	"A number means a process; write ./NUMBER for a core file of that name.\n";
/* clang-format on */

/* Returns the number if s is a number, 0 if it is none, and -1 if no process can have it. */
static long number(const char *s)
{
	uint64_t n;

	return !decimal_parse(s, &n) ? 0 : n < 1 || n > INT32_MAX ? -1 : (long)n;
}

static int parse(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "all-threads", no_argument, NULL, 'a' },
		{ "no-names", no_argument, NULL, 'n' },
		{ "no-inlines", no_argument, NULL, 'i' },
		{ "interpreter-frames", no_argument, NULL, 'I' },
		{ "sysroot", required_argument, NULL, 's' },
		{ "half", no_argument, NULL, 'H' },
		CMDLINE_OPTIONS,
		{ 0 },
	};
	struct cmdline c = { .tool = "prof-dump",
			     .usage = usage,
			     .shorts = ":anvh",
			     .longs = longs,
			     .argc = argc,
			     .argv = argv };
	int r;

	*ret = (struct options){ .names = true, .inlined = true };
	for (int val = cmdline_next(&c); val != CMDLINE_END; val = cmdline_next(&c)) {
		switch (val) {
		case CMDLINE_EXIT:
			return c.status;
		case 'a':
			ret->all = true;
			break;
		case 'n':
			ret->names = false;
			break;
		case 'i':
			ret->inlined = false;
			break;
		case 'I':
			ret->interpreter = true;
			break;
		case 's':
			r = cmdline_path(&c, &ret->sysroot);
			if (r != EXITS_GO_ON)
				return r;
			break;
		case 'H':
			ret->half = true;
			break;
		}
	}
	if (argc - optind != 1)
		return cmdline_refuse_all(
			"needs exactly one process id or core file; see `prof-dump --help`");
	ret->what = argv[optind];
	ret->pid = number(ret->what);
	if (ret->pid < 0)
		return cmdline_refuse_all(
			"%s: not a process id; write ./%s for a core file of that name", ret->what,
			ret->what);
	if (ret->pid && ret->sysroot)
		return cmdline_refuse_all("--sysroot: %s: is for core files; a process has its own "
					  "root",
					  ret->sysroot);
	if (!ret->names && !ret->inlined)
		return cmdline_refuse_all("--no-inlines: not together with --no-names, which "
					  "shows none; give one of them");
	return EXITS_GO_ON;
}

/* --- the half without rights --- */

static int run_walker(const struct options *o)
{
	/* Not `nobody`: services that run as nobody could kill the process. A container may lack
	 * the other id. */
	const uid_t id = namespace_has_id(DEPLOY_IDS_DUMP) ? DEPLOY_IDS_DUMP : NOBODY;
	const struct sandbox box = { .change_ids = geteuid() == 0,
				     .uid = id,
				     .gid = id,
				     .caps = SANDBOX_NO_CAPS,
				     .max_files = MAX_FILES,
				     .max_memory = MAX_MEMORY };
	const struct walker_options w = { .all = o->all,
					  .names = o->names,
					  .inlined = o->inlined,
					  .interpreter = o->interpreter,
					  .core = o->pid ? NULL : o->what };
	const char *step;
	int type;
	socklen_t n = sizeof(type);

	if (getsockopt(HALF_FD, SOL_SOCKET, SO_TYPE, &type, &n) < 0 || type != SOCK_SEQPACKET)
		return cmdline_refuse_all("--half: only for prof-dump's own use");
	struct cell cell = { .makes = true };

	/* A user namespace would have no other user to change to. */
	cell_prepare(&cell, NULL, !box.change_ids);
	int r = sandbox_enter(&box, &step);

	if (r) {
		log_error("%s: %s; is this a container without user %d?", step, strerror(-r),
			  NOBODY);
		return EXITS_FAILED;
	}
	r = cell_enter(&cell, NULL);
	if (!r)
		r = cell_seal(&cell);
	if (r)
		return EXITS_FAILED;
	return walker_run(HALF_FD, &w);
}

/* --- the half with the caller's rights --- */

/* The other half does not inherit the descriptors that this one was started with. */
static int start_walker(char **argv, int argc, pid_t *ret_pid, int *ret_socket)
{
	const char *const first[] = { "prof-dump", "--half" };
	char **args = calloc((size_t)argc + 2, sizeof(*args));
	posix_spawn_file_actions_t actions;
	int pair[2];

	if (!args)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		free(args);
		return -errno;
	}
	memcpy(args, first, sizeof(first));
	memcpy(args + 2, argv + 1, ((size_t)argc - 1) * sizeof(*args));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pair[1], HALF_FD);
	posix_spawn_file_actions_addclosefrom_np(&actions, HALF_FD + 1);
	int r = -posix_spawn(ret_pid, "/proc/self/exe", &actions, NULL, args, environ);

	posix_spawn_file_actions_destroy(&actions);
	free(args);
	close(pair[1]);
	if (r)
		close(pair[0]);
	else
		*ret_socket = pair[0];
	return r;
}

static int ptrace_scope(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = 0;
	if (f)
		fclose(f);
	return scope;
}

static void say_denied(const struct live *l)
{
	int scope = ptrace_scope();

	if (geteuid() != l->uid && geteuid() != 0)
		log_error("%d: belongs to user %u; run prof-dump as that user or as root", l->pid,
			  l->uid);
	else if (scope == 3)
		log_error("%d: cannot be traced: kernel.yama.ptrace_scope is 3; "
			  "only a reboot resets it",
			  l->pid);
	else if (scope)
		log_error("%d: cannot be traced: kernel.yama.ptrace_scope is %d; run as root, "
			  "or set it to 0",
			  l->pid, scope);
	else
		log_error("%d: cannot be traced: it has, or had, other rights than you; "
			  "run as root%s",
			  l->pid, geteuid() ? "" : ", with CAP_SYS_PTRACE");
}

static void say(const struct live *l, bool all, int r)
{
	switch (r) {
	case LIVE_NO_PROCESS:
		log_error("%d: no such process; see `ps -e`, or write ./%d for a core file", l->pid,
			  l->pid);
		break;
	case LIVE_THREAD:
		log_error("%d: is a thread of process %d; dump that process with --all-threads",
			  l->pid, l->other);
		break;
	case LIVE_KERNEL:
		log_error("%d: is a kernel thread, which has no user stack; see /proc/%d/stack",
			  l->pid, l->pid);
		break;
	case LIVE_ENDED:
		log_error(all || l->alive == l->pid ? "%d: has ended and has no stacks"
						    : "%d: its first thread has ended; "
						      "use --all-threads for the others",
			  l->pid);
		break;
	case LIVE_TRACED:
		log_error("%d: is traced by process %d; end that one first", l->pid, l->other);
		break;
	case LIVE_DENIED:
		say_denied(l);
		break;
	case LIVE_COMPAT:
		log_error("%d: is a 32-bit process, which prof-dump cannot dump; use gdb", l->pid);
		break;
	case LIVE_SELF:
		log_error("%d: is prof-dump itself; give another process", l->pid);
		break;
	case -ETIMEDOUT:
		log_error("%d: the walk of its stacks took more than %d s and was given up; "
			  "try again when the machine is less busy",
			  l->pid, CALLER_PATIENCE_MS / 1000);
		break;
	case -ESRCH:
	case -ENOENT:
		log_error("%d: ended before the dump; give a process that still runs", l->pid);
		break;
	case -EPIPE: /* the other half has logged the reason */
		break;
	default:
		log_error("%d: cannot be dumped: %s; see the limits of open files and memory "
			  "(ulimit -n, memory.max)",
			  l->pid, strerror(r < 0 ? -r : EPROTO));
	}
}

/* Serves the other half until it ends, and lets late-stopping threads continue meanwhile. Takes
 * socket; -1: the other half wants nothing more. Returns its exit status. */
static int finish(pid_t walker, int socket, struct live *late)
{
	int status, r = 0;
	bool any = late && late->count > 0;

	while (socket >= 0 && (!r || r == -ETIMEDOUT)) {
		r = lend_debug(socket, any ? LATE_MS : -1);
		any = any && live_late(late);
	}
	if (socket >= 0)
		close(socket);
	while (any && waitpid(walker, &status, WNOHANG) == 0) {
		any = live_late(late);
		usleep(LATE_MS * 1000);
	}
	if (!any)
		while (waitpid(walker, &status, 0) < 0 && errno == EINTR)
			;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WTERMSIG(status) == SIGPIPE) /* the reader has closed the pipe */
		return EXITS_FAILED;
	log_error("the half that reads files ended by signal %d (%s); report this, with the file",
		  WTERMSIG(status), strsignal(WTERMSIG(status)));
	return EXITS_FAILED;
}

static int dump_process(const struct options *o, int argc, char **argv)
{
	const pid_t pid = (pid_t)o->pid;
	struct live l;
	pid_t walker;
	int socket;
	int r = live_open(pid, &l);

	if (!r)
		r = start_walker(argv, argc, &walker, &socket);
	if (r) {
		say(&l, o->all, r);
		live_close(&l);
		return EXITS_FAILED;
	}
	r = caller_process(socket, walker, &l, o->all);
	if (r) {
		close(socket);
		socket = -1;
	}
	if (r)
		say(&l, o->all, r);
	else if (l.count)
		log_warning("%d: thread %d%s did not stop, because it sleeps in the kernel; walked "
			    "with the registers that the kernel shows",
			    pid, l.threads[0].tid, l.count > 1 ? ", and others," : "");
	if (!r)
		log_info("%d: %zu threads were stopped for %llu us", pid, l.stopped,
			 (unsigned long long)(l.stopped_ns / 1000));
	int status = finish(walker, socket, &l);

	live_close(&l);
	return r ? EXITS_FAILED : status;
}

static int dump_core(const struct options *o, int argc, char **argv)
{
	struct stat st;
	pid_t walker;
	int socket, fd = open(o->what, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0) {
		log_error("%s: %s; give the path of a core file or a process id", o->what,
			  strerror(errno));
		return EXITS_FAILED;
	}
	if (!S_ISREG(st.st_mode)) {
		log_error("%s: is not a regular file; give the path of a core file", o->what);
		close(fd);
		return EXITS_FAILED;
	}
	int r = start_walker(argv, argc, &walker, &socket);

	if (!r) {
		r = lend_core(socket, fd, o->sysroot ? o->sysroot : "");
		close(socket);
	}
	close(fd);
	if (r) {
		log_error("%s: cannot be dumped: %s; see the limits of open files and memory "
			  "(ulimit -n, memory.max)",
			  o->what, strerror(-r));
		return EXITS_FAILED;
	}
	return finish(walker, -1, NULL);
}

int main(int argc, char **argv)
{
	struct options o;

	stdfds_hold();
	log_init("prof-dump", LOG_WARNING);
	const int r = parse(argc, argv, &o);

	if (r != EXITS_GO_ON)
		return r;
	if (o.half)
		return run_walker(&o);
	/* If this fails, the host's /proc has to do. */
	(void)procroot_take();
	return o.pid ? dump_process(&o, argc, argv) : dump_core(&o, argc, argv);
}
