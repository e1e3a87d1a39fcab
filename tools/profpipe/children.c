/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "tools/profpipe/children.h"

#define LOG_LINES_MAX 2000	/* of one tool: a tool gone mad does not fill a terminal */
#define FDS_MAX 8

static int tool_path(const char *name, char *ret, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);

	if (n > 0) {
		ret[n] = '\0';
		char *slash = strrchr(ret, '/');

		if (slash && (size_t)(slash + 1 - ret) + strlen(name) < size) {
			strcpy(slash + 1, name);
			if (access(ret, X_OK) == 0)
				return 0;
		}
	}
	n = snprintf(ret, size, "%s/%s", PROFPIPE_LIBEXECDIR, name);
	return n > 0 && (size_t)n < size && access(ret, X_OK) == 0 ? 0 : -ENOENT;
}

/* In the child: the descriptors to their numbers, everything else closed. */
static void arrange(const struct child_fd *fds, size_t n)
{
	int moved[FDS_MAX];

	/* Out of the way first, so that none lands on another. */
	for (size_t i = 0; i < n; i++)
		moved[i] = fcntl(fds[i].fd, F_DUPFD, 64);
	for (size_t i = 0; i < n; i++)
		dup2(moved[i], fds[i].number);
	close_range(n ? (unsigned)fds[n - 1].number + 1 : 3, ~0u, 0);
}

int child_start(struct child *c, const char *name, const char *const argv[], const struct child_fd *fds, size_t n)
{
	char path[4096];
	int status[2], log[2], life[2], r = tool_path(name, path, sizeof(path));
	char *const empty[] = { NULL };

	if (r)
		return r;
	if (pipe2(status, O_CLOEXEC) < 0 || pipe2(log, O_CLOEXEC) < 0 || pipe2(life, O_CLOEXEC) < 0)
		return -errno;
	struct child_fd all[FDS_MAX] = { { log[1], 2 }, { status[1], 3 }, { life[0], 4 } };
	if (n > FDS_MAX - 3)
		return -E2BIG;
	memcpy(all + 3, fds, n * sizeof(*fds));
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		sigset_t none;

		setsid();
		int null = open("/dev/null", O_RDWR);
		bool has_in = false, has_out = false;
		for (size_t i = 0; i < n; i++) {
			has_in |= fds[i].number == 0;
			has_out |= fds[i].number == 1;
		}
		if (!has_in)
			dup2(null, 0);
		if (!has_out)
			dup2(null, 1);
		arrange(all, n + 3);
		for (int s = 1; s < NSIG; s++)
			signal(s, SIG_DFL);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execve(path, (char *const *)argv, empty);
		dprintf(2, "%s: %s\n", path, strerror(errno));
		_exit(127);
	}
	close(status[1]);
	close(log[1]);
	close(life[0]);
	fcntl(status[0], F_SETFL, O_NONBLOCK);
	fcntl(log[0], F_SETFL, O_NONBLOCK);
	*c = (struct child){ .name = name, .pid = pid, .status = status[0], .log = log[0], .life = life[1], .heard_ns = clock_mono_ns() };
	return 0;
}

/* One line of the tool's log: escaped, whatever it is. */
static void say(struct child *c, bool print)
{
	struct buf b = BUF_INIT(16 * CHILD_LINE);

	if (c->line_len && log_escape(&b, (struct str){ .data = c->line, .len = (uint32_t)c->line_len }, CHILD_LINE) == 0) {
		size_t n = b.len < sizeof(c->last_line) - 1 ? b.len : sizeof(c->last_line) - 1;

		memcpy(c->last_line, b.data, n);
		c->last_line[n] = '\0';
		c->lines++;
		if (c->lines == LOG_LINES_MAX && !c->stopped_log) {
			c->stopped_log = true;
			log_warning("%s says too much; what follows is not shown", c->name);
		}
		if (print && c->lines < LOG_LINES_MAX)
			fprintf(stderr, "%.*s\n", (int)b.len, (const char *)b.data);
	}
	buf_done(&b);
	c->line_len = 0;
}

void child_read(struct child *c, bool print)
{
	char text[4096];
	struct status st;
	ssize_t n;

	while (c->log >= 0 && (n = read(c->log, text, sizeof(text))) != 0) {
		if (n < 0)
			break;
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] == '\n' || c->line_len == sizeof(c->line))
				say(c, print);
			if (text[i] != '\n')
				c->line[c->line_len++] = text[i];
		}
	}
	while (c->status >= 0 && (n = read(c->status, &st, sizeof(st))) > 0) {
		/* Written whole or not at all: anything else is no tool of ours any more. */
		if (n != sizeof(st) || st.magic != STATUS_MAGIC)
			continue;
		c->last = st;
		c->heard_ns = clock_mono_ns();
		c->ready |= st.phase == STATUS_READY || st.phase == STATUS_RUNNING;
		c->done |= st.phase == STATUS_DONE;
		c->failed |= st.phase == STATUS_FAILED;
	}
}

void child_measure(struct child *c)
{
	char path[64], text[2048];
	ssize_t n = -1;

	if (!c->pid || c->reaped)
		return;
	snprintf(path, sizeof(path), "/proc/%d/stat", c->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n > 0) {
		unsigned long user, system;

		text[n] = '\0';
		char *at = strrchr(text, ')');
		if (at && sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2)
			c->cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	}
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", c->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	char *at = strstr(text, "\nPss:");
	if (at)
		c->pss = strtoull(at + 5, NULL, 10) * 1024;
	if (c->pss > c->pss_peak)
		c->pss_peak = c->pss;
}

bool child_reap(struct child *c)
{
	struct rusage ru;

	if (c->reaped || !c->pid)
		return c->reaped;
	if (wait4(c->pid, &c->wait_status, WNOHANG, &ru) != c->pid)
		return false;
	c->reaped = true;
	c->cpu_s = (double)ru.ru_utime.tv_sec + (double)ru.ru_stime.tv_sec + (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
	return true;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void child_end(struct child *c, int ms)
{
	if (!c->pid)
		return;
	close_fd(&c->life);
	for (int waited = 0; !child_reap(c); waited += 5) {
		if (waited >= ms)
			kill(c->pid, SIGKILL);
		child_read(c, true);
		usleep(5000);
	}
	child_read(c, true);
	say(c, true);
	close_fd(&c->log);
	close_fd(&c->status);
}

const char *child_how(const struct child *c)
{
	static char text[64];

	if (WIFSIGNALED(c->wait_status))
		snprintf(text, sizeof(text), "signal %d", WTERMSIG(c->wait_status));
	else
		snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(c->wait_status));
	return text;
}
