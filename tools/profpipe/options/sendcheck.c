/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options/sendcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/exits.h"
#include "common/base/files/fd.h"
#include "common/base/files/toolpath.h"

#define HEAD "prof-send: error: "

/* Starts prof-send with an empty standard input and `said` as standard error. -errno. */
static int start(const struct words *w, int said, pid_t *ret)
{
	const char *variables[OTLP_VARIABLES];
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none;
	char path[4096];
	int r = toolpath_find(w->argv[0], path, sizeof(path));

	if (r)
		return r;
	otlp_variables(variables);
	sigemptyset(&none);
	r = posix_spawn_file_actions_init(&files);
	if (r)
		return -r;
	r = posix_spawnattr_init(&how);
	if (!r) {
		r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
		if (!r)
			r = posix_spawn_file_actions_adddup2(&files, 0, 1);
		if (!r)
			r = posix_spawn_file_actions_adddup2(&files, said, 2);
		if (!r)
			r = posix_spawnattr_setsigmask(&how, &none);
		if (!r)
			r = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
		if (!r)
			r = posix_spawn(ret, path, &files, &how, w->argv, (char **)variables);
		posix_spawnattr_destroy(&how);
	}
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

/* Reads everything, and keeps the beginning. */
static void hear(int fd, char ret[static SENDCHECK_TEXT])
{
	size_t len = 0;
	char text[512];

	for (;;) {
		const ssize_t n = read(fd, text, sizeof(text));

		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		const size_t room = SENDCHECK_TEXT - 1 - len, got = n > 0 ? (size_t)n : 0;

		memcpy(ret + len, text, numbers_smaller(got, room));
		len += numbers_smaller(got, room);
	}
	ret[len] = '\0';
}

static int exit_status(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXITS_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXITS_FAILED;
}

int sendcheck_run(const struct otlp_words *o, char ret[static SENDCHECK_TEXT])
{
	struct words w = WORDS_NONE;
	int said[2];
	pid_t pid;

	words_add(&w, "prof-send");
	otlp_pass_on(o, &w);
	words_add(&w, "--check");
	int r = words_end(&w);

	if (!r && pipe2(said, O_CLOEXEC) < 0)
		r = -errno;
	if (r) {
		words_done(&w);
		return r;
	}
	r = start(&w, said[1], &pid);
	words_done(&w);
	fd_close(&said[1]);
	if (!r) {
		hear(said[0], ret);
		r = exit_status(pid) == EXITS_DONE ? 0 : SENDCHECK_REFUSED;
	}
	fd_close(&said[0]);
	if (r != SENDCHECK_REFUSED)
		return r;
	if (strncmp(ret, HEAD, strlen(HEAD)) == 0)
		memmove(ret, ret + strlen(HEAD), strlen(ret + strlen(HEAD)) + 1);
	ret[strcspn(ret, "\n")] = '\0';
	return r;
}
