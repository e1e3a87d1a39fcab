/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/store/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/base/exits.h"
#include "common/base/log.h"
#include "common/base/toolpath.h"
#include "tools/prof-export/output/output.h"
#include "tools/prof-export/store/profiles.h"

#define PATIENCE_S 5 /* from a signal to us until the writer gets it */

/* In the child: runs this program again, with the file, a pipe that closes with its parent, and a
 * limit on the file's size. */
static void become_writer(const struct supervisor *s, const struct profiles *p, int life, int argc,
			  char **argv)
{
	const struct rlimit most = { .rlim_cur = s->keep_bytes, .rlim_max = s->keep_bytes };
	char path[4096], numbers[3][16];
	const char **all = calloc((size_t)argc + 7, sizeof(*all));
	sigset_t none;
	int r = all ? tool_path("prof-export", path, sizeof(path)) : -ENOMEM;

	if (r) {
		log_error("prof-export: %s: user %u may not run it here", strerror(-r),
			  (unsigned)geteuid());
		_exit(EXITS_FAILED);
	}
	memcpy(all, argv, (size_t)argc * sizeof(*all));
	snprintf(numbers[0], sizeof(numbers[0]), "%d", p->fd);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", life);
	snprintf(numbers[2], sizeof(numbers[2]), "%d", p->journal);
	all[argc] = "--output-fd";
	all[argc + 1] = numbers[0];
	all[argc + 2] = "--life-fd";
	all[argc + 3] = numbers[1];
	if (p->journal >= 0) {
		all[argc + 4] = "--journal-fd";
		all[argc + 5] = numbers[2];
	}
	sigemptyset(&none);
	/* Beyond the limit a write fails, as on a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	if (!setrlimit(RLIMIT_FSIZE, &most) && !fcntl(p->fd, F_SETFD, 0) &&
	    !fcntl(life, F_SETFD, 0) && (p->journal < 0 || !fcntl(p->journal, F_SETFD, 0)) &&
	    !sigprocmask(SIG_SETMASK, &none, NULL))
		execv(path, (char *const *)all);
	log_error("%s: %s", path, strerror(errno));
	_exit(EXITS_FAILED);
}

/* Waits for the writer and returns its wait status. After SIGTERM or SIGINT the stream has a moment
 * to end by itself; then the writer gets the signal too. */
static int await_writer(pid_t pid, const sigset_t *set)
{
	const struct timespec patience = { .tv_sec = PATIENCE_S };
	bool told = false;
	int how;

	for (;;) {
		if (waitpid(pid, &how, WNOHANG) == pid)
			return how;
		const int s = told ? sigtimedwait(set, NULL, &patience) : sigwaitinfo(set, NULL);

		if (s == SIGTERM || s == SIGINT)
			told = true;
		else if (s < 0 && errno == EAGAIN)
			kill(pid, SIGTERM);
	}
}

/* Privileges are separate: this process opens the output and reads no byte of the stream; the
 * writer reads the stream and has only the open file of the folder. */
int supervisor_run(const struct supervisor *s, int argc, char **argv)
{
	struct profiles p = PROFILES_NONE;
	int life[2];
	sigset_t set;

	if (geteuid() != s->uid) {
		log_error("--output-dir: prof-export runs as user %u, but --ids names %u; "
			  "start it as that user",
			  (unsigned)geteuid(), (unsigned)s->uid);
		return EXITS_FAILED;
	}
	p.max = s->keep_files;
	p.max_bytes = s->keep_bytes;
	int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
				pipe2(life, O_CLOEXEC)
			? -errno
			: 0;

	if (!r)
		r = profiles_begin(&p, s->dir, s->ending, time(NULL));
	if (r) {
		log_error("%s: %s; give a folder that user %u can write with --output-dir", s->dir,
			  strerror(-r), (unsigned)geteuid());
		return EXITS_FAILED;
	}
	if (p.resumed)
		log_warning("%s/%s: its writer was killed; continuing it", s->dir, p.part);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	const pid_t pid = fork();

	if (!pid)
		become_writer(s, &p, life[0], argc, argv);
	const int how = pid < 0 ? W_EXITCODE(EXITS_FAILED, 0) : await_writer(pid, &set);
	const int code = WIFEXITED(how) ? WEXITSTATUS(how) : EXITS_FAILED;

	if (pid < 0)
		log_error("cannot start a writer: %s", strerror(errno));
	else if (WIFSIGNALED(how))
		log_error("%s/%s: its writer was killed by signal %d (%s)", s->dir, p.part,
			  WTERMSIG(how), strsignal(WTERMSIG(how)));
	r = profiles_end(&p, code == EXITS_DONE || code == EXITS_CUT   ? PROFILES_WHOLE
			     : WIFSIGNALED(how) || code == EXITS_AGAIN ? PROFILES_KILLED
								       : PROFILES_FAILED);
	if (r)
		output_say(s->dir, r);
	return r && code == EXITS_DONE ? EXITS_FAILED : code;
}
