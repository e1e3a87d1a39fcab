/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/profpipe/command.h"

int command_prepare(struct command *c, char **argv)
{
	int hold[2], error[2];
	char byte;

	if (pipe2(hold, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(hold[1]);
		/* Ended instead of released: the run never began. */
		if (read(hold[0], &byte, 1) != 1)
			_exit(0);
		/* Nothing of ours but standard input, output and error; the error pipe closes with exec. */
		if (error[1] != 3) {
			dup3(error[1], 3, O_CLOEXEC);
			error[1] = 3;
		}
		close_range(4, ~0u, 0);
		execvp(argv[0], argv);
		int e = errno;
		if (write(error[1], &e, sizeof(e)) != sizeof(e))
			_exit(125);
		_exit(e == ENOENT ? 127 : 126);
	}
	close(hold[0]);
	close(error[1]);
	*c = (struct command){ .pid = pid, .hold = hold[1], .error = error[0] };
	return 0;
}

int command_release(struct command *c)
{
	int e = 0;
	ssize_t n;

	if (write(c->hold, "G", 1) != 1)
		return -errno;
	do {
		n = read(c->error, &e, sizeof(e));
	} while (n < 0 && errno == EINTR);
	close(c->hold);
	close(c->error);
	c->hold = c->error = -1;
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
	if (!c->pid || c->ended)
		return;
	if (c->hold >= 0)
		close(c->hold);
	kill(c->pid, SIGTERM);
	for (int i = 0; i < 100 && !command_reap(c); i++)
		usleep(10000);
	if (!c->ended) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, &c->wait_status, 0);
	}
}
