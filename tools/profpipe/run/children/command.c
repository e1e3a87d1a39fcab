/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/children/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/files/fd.h"
#include "common/cell/confine/procroot.h"
#include "tools/profpipe/run/children/target.h"

static ssize_t read_all(int fd, void *to, size_t n)
{
	ssize_t got;

	do
		got = read(fd, to, n);
	while (got < 0 && errno == EINTR);
	return got;
}

static void run(char **argv, int hold, int error)
{
	const char *slash = strrchr(argv[0], '/');
	char byte;

	if (procroot_leave())
		_exit(EXITS_NOT_RUN);
	/* Use the name that exec will set, so that samples before the exec have it too. */
	prctl(PR_SET_NAME, slash ? slash + 1 : argv[0], 0, 0, 0);
	target_map(argv[0]);
	/* The pipe ended without a byte, so sampling never began. */
	if (read_all(hold, &byte, 1) != 1)
		_exit(EXITS_DONE);
	/* Keep only standard input, output and error; exec closes the error pipe. */
	if (error != 3 && dup3(error, 3, O_CLOEXEC) < 0)
		_exit(EXITS_NOT_RUN);
	if (close_range(4, ~0u, 0) < 0)
		_exit(EXITS_NOT_RUN);
	execvp(argv[0], argv);
	const int e = errno;
	const ssize_t written = write(3, &e, sizeof(e));

	_exit(written == sizeof(e) && e == ENOENT ? EXITS_NOT_FOUND : EXITS_NOT_RUN);
}

int command_prepare(struct command *c, char **argv)
{
	int hold[2] = { -1, -1 }, error[2] = { -1, -1 }, r = 0;

	*c = COMMAND_NONE;
	if (pipe2(hold, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0)
		r = -errno;
	if (!r) {
		c->pid = fork();
		if (c->pid == 0) {
			/* If our copy stayed open, we would not notice the launcher's end. */
			close(hold[1]);
			run(argv, hold[0], error[1]);
		}
		if (c->pid < 0) {
			r = -errno;
			c->pid = 0;
		}
	}
	fd_close(&hold[0]);
	fd_close(&error[1]);
	if (!r && fcntl(error[0], F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	c->hold = hold[1];
	c->error = error[0];
	return r;
}

void command_release(struct command *c)
{
	/* COMMAND may have died while it was held. Then the write fails, and command_reap reports
	 * the end. */
	const ssize_t written = write(c->hold, "G", 1);

	(void)written;
	c->released = true;
	fd_close(&c->hold);
}

int command_error(struct command *c)
{
	int e = 0;
	ssize_t n;

	if (c->error < 0)
		return 0;
	n = read_all(c->error, &e, sizeof(e));
	if (n < 0 && errno == EAGAIN)
		return 0;
	fd_close(&c->error);
	return n == sizeof(e) ? -e : 0;
}

bool command_reap(struct command *c)
{
	if (c->pid && !c->ended && waitpid(c->pid, &c->wait_status, WNOHANG) == c->pid)
		c->ended = true;
	return c->ended;
}

void command_drop(struct command *c)
{
	fd_close(&c->hold);
	fd_close(&c->error);
	if (!c->pid || c->ended || c->released)
		return;
	/* It still waits in our own code, so it must end with us, even if it is stopped. */
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &c->wait_status, 0) < 0 && errno == EINTR)
		;
	c->ended = true;
}
