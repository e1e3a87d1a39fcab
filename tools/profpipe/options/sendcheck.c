/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options/sendcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/exits.h"
#include "common/base/files/fd.h"
#include "common/base/files/toolpath.h"
#include "common/base/system/clock.h"

#define HEAD "prof-send: error: "
#define WARNING "prof-send: warning: "
#define WAIT_MS 10000
#define STEP_MS 200

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

/* Reads everything, and keeps the beginning. Returns false if that takes too long, for example
 * because a file system does not answer. */
static bool hear(int fd, char ret[static SENDCHECK_TEXT])
{
	const uint64_t until = clock_mono_ns() + WAIT_MS * 1000000ull;
	size_t len = 0;
	char text[512];
	bool late = false;

	while (!late) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		late = clock_mono_ns() >= until;
		if (poll(&p, 1, STEP_MS) <= 0)
			continue;
		const ssize_t n = read(fd, text, sizeof(text));

		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		const size_t room = SENDCHECK_TEXT - 1 - len, got = n > 0 ? (size_t)n : 0;

		memcpy(ret + len, text, numbers_smaller(got, room));
		len += numbers_smaller(got, room);
	}
	ret[len] = '\0';
	return !late;
}

static int exit_status(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXITS_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXITS_FAILED;
}

/* Removes warnings, and the beginnings of the other lines. */
static void keep_errors(char *text)
{
	char *to = text;
	const char *end = text + strlen(text);

	for (char *line = text; line < end;) {
		const size_t n = strcspn(line, "\n"), head = strlen(HEAD);
		const bool warns = strncmp(line, WARNING, strlen(WARNING)) == 0;
		const size_t skip = strncmp(line, HEAD, head) == 0 ? head : 0;
		char *next = line + n + (line[n] == '\n');

		if (!warns && n > skip) {
			memmove(to, line + skip, n - skip);
			to += n - skip;
			*to++ = '\n';
		}
		line = next;
	}
	/* Each line had room for its end, except the last one, which may have been cut off. */
	to[to > text ? -1 : 0] = '\0';
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
	if (!r && !hear(said[0], ret)) {
		kill(pid, SIGKILL);
		snprintf(ret, SENDCHECK_TEXT,
			 "--otlp: its files could not be checked within %d s; "
			 "move them to a file system that answers",
			 WAIT_MS / 1000);
	}
	if (!r)
		r = exit_status(pid) == EXITS_DONE ? 0 : SENDCHECK_REFUSED;
	fd_close(&said[0]);
	if (r == SENDCHECK_REFUSED)
		keep_errors(ret);
	return r;
}
