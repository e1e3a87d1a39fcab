/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/children/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/files/fd.h"
#include "common/base/files/smallfile.h"
#include "common/base/files/toolpath.h"
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "common/cell/deploy.h"

#define HEARD_NS 2000000000u
/* Higher than all numbers that a tool uses. */
#define OUT_OF_WAY (CHILD_FIRST_FD + CHILD_FDS_MAX + 1)

/* In the child: moves the descriptors to their numbers and closes all others. `error` becomes the
 * last one, close-on-exec. */
static int arrange(const struct child_fd *fds, size_t n, int *error)
{
	int moved[CHILD_FDS_MAX + 4], highest = 2;

	/* Move all descriptors to high numbers first, so that none overwrites another one. */
	for (size_t i = 0; i < n; i++) {
		moved[i] = fcntl(fds[i].fd, F_DUPFD_CLOEXEC, OUT_OF_WAY);
		if (moved[i] < 0)
			return -errno;
		if (fds[i].number > highest)
			highest = fds[i].number;
	}
	const int out_of_way = fcntl(*error, F_DUPFD_CLOEXEC, OUT_OF_WAY);

	if (out_of_way < 0)
		return -errno;
	*error = highest + 1;
	for (size_t i = 0; i < n; i++)
		if (dup2(moved[i], fds[i].number) < 0)
			return -errno;
	if (dup3(out_of_way, *error, O_CLOEXEC) < 0)
		return -errno;
	return close_range((unsigned)highest + 2, ~0u, 0) < 0 ? -errno : 0;
}

static int drop(const struct child_start *how)
{
	if (!how->drop)
		return 0;
	/* Without CAP_SETPCAP it stays as it is. */
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (setgroups(0, NULL) < 0 || setresgid(how->gid, how->gid, how->gid) < 0 ||
	    setresuid(how->uid, how->uid, how->uid) < 0)
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* Lowers the limit of file sizes, so that a write beyond it fails, as on a full disk. */
static int limit_files(const struct child_start *how)
{
	const struct rlimit most = { .rlim_cur = how->file_most, .rlim_max = how->file_most };

	return how->file_most && setrlimit(RLIMIT_FSIZE, &most) < 0 ? -errno : 0;
}

static void become(const char *path, const struct child_start *how, const struct child_fd *fds,
		   size_t n, int error)
{
	/* Sanitizers of test builds read their settings from the environment. */
	static const char *const kept[] = { "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS" };
	const char *environment[CHILD_VARIABLES + 3 + 1] = { NULL };
	char text[3][512];
	sigset_t none;
	size_t used = 0;

	for (; how->variables && how->variables[used] && used < CHILD_VARIABLES; used++)
		environment[used] = how->variables[used];
#ifdef __SANITIZE_ADDRESS__
	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(kept[i]);

		if (value && snprintf(text[i], sizeof(text[i]), "%s=%s", kept[i], value) <
				     (int)sizeof(text[i]))
			environment[used++] = text[i];
	}
#endif
	(void)kept;
	(void)text;
	(void)used;
	setsid();
	int r = arrange(fds, n, &error);

	if (!r)
		r = limit_files(how);
	if (!r)
		r = drop(how);
	if (!r) {
		for (int s = 1; s < NSIG; s++)
			signal(s, SIG_DFL);
		sigemptyset(&none);
		signal(SIGXFSZ, SIG_IGN); /* so that a write beyond the limit returns an error */
		sigprocmask(SIG_SETMASK, &none, NULL);
		execve(path, (char *const *)how->argv, (char *const *)environment);
		r = -errno;
	}
	const ssize_t written = write(error, &r, sizeof(r));

	_exit(written == sizeof(r) ? EXITS_NOT_FOUND : EXITS_NOT_RUN);
}

/* Returns the errno of a failed exec, or 0 if the exec closed the pipe. */
static int exec_error(int fd)
{
	int r = 0;
	ssize_t n;

	do
		n = read(fd, &r, sizeof(r));
	while (n < 0 && errno == EINTR);
	return n == sizeof(r) ? r : 0;
}

struct pipes {
	int status[2], log[2], life[2], error[2], null;
};

static void close_pipes(struct pipes *p)
{
	int *all[] = { p->status, p->log, p->life, p->error };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		fd_close(&all[i][0]);
		fd_close(&all[i][1]);
	}
	fd_close(&p->null);
}

static int open_pipes(struct pipes *p)
{
	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, -1 };
	if (pipe2(p->status, O_CLOEXEC) < 0 || pipe2(p->log, O_CLOEXEC) < 0 ||
	    pipe2(p->life, O_CLOEXEC) < 0 || pipe2(p->error, O_CLOEXEC) < 0)
		return -errno;
	p->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (p->null < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : CHILD_NO_NULL;
	/* Only our ends are non-blocking. A tool that does not read its life pipe must not block
	 * us. */
	if (fcntl(p->status[0], F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(p->log[0], F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(p->life[1], F_SETFL, O_WRONLY | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int child_start(struct child *c, const struct child_start *how)
{
	char path[4096];
	struct pipes p;
	pid_t pid = -1;

	if (how->count > CHILD_FDS_MAX)
		return -E2BIG;
	int r = toolpath_find(how->argv[0], path, sizeof(path));
	if (r)
		return r;
	r = open_pipes(&p);
	if (!r) {
		struct child_fd all[CHILD_FDS_MAX + 5] = { { p.null, 0 },
							   { p.null, 1 },
							   { p.log[1], 2 },
							   { p.status[1], 3 },
							   { p.life[0], 4 } };
		size_t n = 5;

		for (size_t i = 0; i < how->count; i++) {
			if (how->fds[i].number < 2)
				all[how->fds[i].number] = how->fds[i];
			else
				all[n++] = how->fds[i];
		}
		pid = fork();
		if (pid == 0)
			become(path, how, all, n, p.error[1]);
		if (pid < 0)
			r = -errno;
	}
	if (!r) {
		fd_close(&p.error[1]);
		r = exec_error(p.error[0]);
		if (r)
			waitpid(pid, NULL, 0);
	}
	if (!r) {
		const uint64_t former = c->cpu_ns, ready = c->ready_cpu_ns, peak = c->pss_peak;
		const unsigned lines = c->lines;

		child_close(c);
		*c = CHILD_NONE(c->name);
		c->pid = pid;
		c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		c->status = p.status[0];
		c->log = p.log[0];
		c->life = p.life[1];
		p.status[0] = p.log[0] = p.life[1] = -1;
		c->started_ns = c->heard_ns = clock_mono_ns();
		c->cpu_ns = c->former_cpu_ns = former;
		c->ready_cpu_ns = ready;
		c->pss_peak = peak;
		c->lines = lines;
	}
	close_pipes(&p);
	return r;
}

/* A line is complete: shows the previous line, and holds this one back. */
static void take_line(struct child *c, child_show *show, void *ctx)
{
	struct buf b = BUF_INIT(CHILD_SHOWN - 1);
	size_t name = strlen(c->name);

	child_show_pending(c, UINT64_MAX, show, ctx);
	if (!c->line_len)
		return;
	c->lines++;
	/* A tool may log only under its own name. */
	bool named = c->line_len > name && memcmp(c->line, c->name, name) == 0 &&
		     c->line[name] == ':';
	int r = c->lines > CHILD_LINES_MAX ? -ENOBUFS : 0;

	if (!r && !named)
		r = buf_printf(&b, "%s: ", c->name);
	if (!r)
		(void)log_escape(&b, (struct str){ .data = c->line, .len = (uint32_t)c->line_len },
				 CHILD_LINE - 64);
	if (c->lines == CHILD_LINES_MAX + 1)
		r = buf_printf(&b, "%s: too many lines; the rest is not shown", c->name);
	c->line_len = 0;
	if (!r && b.len) {
		memcpy(c->pending, b.data, b.len);
		c->pending[b.len] = '\0';
		c->pending_ns = clock_mono_ns();
	}
	buf_done(&b);
}

static void take_log(struct child *c, const char *text, size_t n, child_show *show, void *ctx)
{
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\n')
			take_line(c, show, ctx);
		else if (c->line_len < sizeof(c->line))
			c->line[c->line_len++] = text[i];
	}
}

static void take_status(struct child *c, const struct status *st)
{
	c->last = *st;
	c->heard_ns = clock_mono_ns();
	c->heard_cpu_ns = c->cpu_ns;
	c->reports += st->phase == STATUS_RUNNING;
	c->ready |= st->phase == STATUS_READY || st->phase == STATUS_RUNNING;
	if (c->ready && !c->ready_ns)
		c->ready_ns = c->heard_ns;
	c->done |= st->phase == STATUS_DONE;
}

void child_read(struct child *c, child_show *show, void *ctx)
{
	char text[4096];
	struct status st;
	ssize_t n = 0;

	/* Take a limited number, so that a flood from one tool does not starve the others. */
	for (int i = 0; i < 64 && c->log >= 0; i++) {
		n = read(c->log, text, sizeof(text));
		if (n <= 0)
			break;
		take_log(c, text, (size_t)n, show, ctx);
	}
	if (c->log >= 0 && n == 0) {
		if (c->line_len)
			take_line(c, show, ctx);
		fd_close(&c->log);
	}
	n = -1;
	for (int i = 0; i < 64 && c->status >= 0 && !c->garbled; i++) {
		n = read(c->status, &st, sizeof(st));
		if (n <= 0)
			break;
		/* Our tools write complete words; only an attacker writes anything else. */
		if (n != sizeof(st) || st.magic != STATUS_MAGIC)
			c->garbled = true;
		else
			take_status(c, &st);
	}
	if (c->status >= 0 && (n == 0 || c->garbled))
		fd_close(&c->status);
}

void child_show_pending(struct child *c, uint64_t before_ns, child_show *show, void *ctx)
{
	if (!c->pending_ns || c->pending_ns >= before_ns)
		return;
	c->pending_ns = 0;
	show(ctx, c, c->pending);
}

/* Opens procfs for its readers. If this fails (-1), the readers fail too. */
static int proc_folder(void)
{
	static int proc = -1;

	if (proc < 0)
		proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return proc;
}

static ssize_t read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[96];

	snprintf(path, sizeof(path), "%d/%s", pid, name);
	return smallfile_read(proc_folder(), path, text, size);
}

/* Measures a tool's own children, such as the processes of prof-symd that run libdw. */
static void measure_helpers(pid_t pid, unsigned depth, uint64_t *cpu_ns, uint64_t *pss)
{
	char name[64], text[2048];
	struct procfs_stat st;

	snprintf(name, sizeof(name), "task/%d/children", pid);
	if (!depth || read_proc(pid, name, text, sizeof(text)) <= 0)
		return;
	for (char *at = text, *end;; at = end) {
		const pid_t helper = (pid_t)strtol(at, &end, 10);

		if (end == at)
			return;
		if (procfs_read_stat(proc_folder(), (uint32_t)helper, &st) == 0)
			*cpu_ns += st.cpu_ns;
		*pss += child_pss(helper);
		measure_helpers(helper, depth - 1, cpu_ns, pss);
	}
}

uint64_t child_pss(pid_t pid)
{
	uint64_t pss = 0;

	return procfs_read_pss(proc_folder(), (uint32_t)pid, &pss) == 0 ? pss : 0;
}

void child_measure(struct child *c, bool memory)
{
	struct procfs_stat st;
	uint64_t cpu_ns;

	if (!c->pid)
		return;
	cpu_ns = clock_cpu_ns(c->pid);
	if (cpu_ns)
		c->cpu_ns = c->former_cpu_ns + c->helpers_ns + cpu_ns;
	/* A tool that reported just now cannot be stopped, so skip the check. */
	if (!memory && c->reports && clock_mono_ns() < c->heard_ns + HEARD_NS) {
		c->stopped_ns = c->blocked_ns = 0;
		c->blocked = false;
		return;
	}
	if (procfs_read_stat(proc_folder(), (uint32_t)c->pid, &st) == 0) {
		c->blocked = st.state == 'D';
		if (!c->blocked)
			c->blocked_ns = 0;
		else if (!c->blocked_ns || c->blocked_cpu_ns != c->cpu_ns)
			c->blocked_ns = clock_mono_ns();
		c->blocked_cpu_ns = c->cpu_ns;
		if (st.state != 'T' && st.state != 't')
			c->stopped_ns = 0;
		else if (!c->stopped_ns)
			c->stopped_ns = clock_mono_ns();
	}
	uint64_t pss = memory ? child_pss(c->pid) : 0, helpers_ns = 0;

	if (!pss)
		return;
	measure_helpers(c->pid, 2, &helpers_ns, &pss);
	if (helpers_ns > c->helpers_ns)
		c->helpers_ns = helpers_ns;
	c->pss = pss;
	if (c->pss > c->pss_peak)
		c->pss_peak = c->pss;
}

bool child_exiting(const struct child *c)
{
	struct procfs_stat st;

	return c->pid && procfs_read_stat(proc_folder(), (uint32_t)c->pid, &st) == 0 && st.exiting;
}

void child_where(const struct child *c, char *ret)
{
	char path[64], text[CHILD_WHERE];
	struct procfs_stat st;

	snprintf(path, sizeof(path), "%d/task", c->pid);
	const int fd = c->pid ? openat(proc_folder(), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
			      : -1;
	DIR *tasks = fd >= 0 ? fdopendir(fd) : NULL;

	*ret = '\0';
	for (const struct dirent *e = tasks ? readdir(tasks) : NULL; e && !*ret;
	     e = readdir(tasks)) {
		const pid_t tid = (pid_t)atol(e->d_name);

		if (!tid || procfs_read_stat(proc_folder(), (uint32_t)tid, &st) < 0 ||
		    st.state != 'D' || read_proc(tid, "wchan", text, sizeof(text)) < 0)
			continue;
		/* /proc shows a kernel function, or "0". */
		if (text[0] != '0')
			memcpy(ret, text, strlen(text) + 1);
	}
	if (tasks)
		closedir(tasks);
	else if (fd >= 0)
		close(fd);
}

bool child_reap(struct child *c)
{
	struct rusage ru;
	siginfo_t si = { 0 };

	/* A helper process of the tool may be stopped, and so not notice its end. The tool's
	 * process group exists until we reap the tool. */
	if (!c->pid || waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) || !si.si_pid)
		return false;
	kill(-c->pid, SIGKILL);
	if (wait4(c->pid, &c->wait_status, WNOHANG, &ru) != c->pid)
		return false;
	c->cpu_ns = c->former_cpu_ns + c->helpers_ns + clock_timeval_ns(ru.ru_utime) +
		    clock_timeval_ns(ru.ru_stime);
	c->pid = 0;
	c->pss = 0;
	fd_close(&c->pidfd);
	fd_close(&c->life);
	return true;
}

pid_t child_leave_behind(struct child *c)
{
	const pid_t pid = c->pid;

	kill(-pid, SIGKILL);
	c->wait_status = SIGKILL;
	c->pid = 0;
	c->pss = 0;
	c->blocked_ns = 0;
	fd_close(&c->pidfd);
	fd_close(&c->life);
	return pid;
}

bool child_stop(struct child *c)
{
	const uint8_t stop = DEPLOY_STOP;

	return c->life >= 0 && write(c->life, &stop, 1) == 1;
}

void child_order(struct child *c, uint8_t order)
{
	child_tell(c, &order, 1);
}

void child_tell(struct child *c, const void *word, size_t n)
{
	if (c->life >= 0)
		(void)!write(c->life, word, n);
}

void child_leave(struct child *c)
{
	fd_close(&c->life);
}

void child_kill(struct child *c)
{
	if (!c->pid)
		return;
	kill(c->pid, SIGKILL);
	c->killed = true;
}

void child_close(struct child *c)
{
	fd_close(&c->pidfd);
	fd_close(&c->log);
	fd_close(&c->status);
	fd_close(&c->life);
}

const char *child_trouble(int r)
{
	if (r == CHILD_NO_NULL)
		return "/dev/null cannot be opened; mknod -m 666 /dev/null c 1 3, "
		       "or mount a /dev with it";
	static char text[4400];

	if (r == -ENOENT) {
		snprintf(text, sizeof(text), "%s; install it beside profpipe or in %s",
			 strerror(ENOENT), toolpath_folder());
		return text;
	}
	const char *remedy = r == -EMFILE || r == -ENFILE
				     ? "; raise the limit of open files (ulimit -n, fs.file-max)"
			     : r == -EAGAIN || r == -ENOMEM
				     ? "; raise the limits of processes and memory (pids.max, "
				       "memory.max, ulimit -u)"
			     : r == -EACCES || r == -ENOEXEC
				     ? "; install profpipe again"
				     : "; report this, with the kernel's version";

	snprintf(text, sizeof(text), "%s%s", strerror(-r), remedy);
	return text;
}

const char *child_how(int wait_status)
{
	static char text[96];

	if (WIFSIGNALED(wait_status))
		snprintf(text, sizeof(text), "signal %d (%s)", WTERMSIG(wait_status),
			 strsignal(WTERMSIG(wait_status)));
	else
		snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(wait_status));
	return text;
}
