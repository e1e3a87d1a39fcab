/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/extractor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/files/toolpath.h"

int extractor_folder(struct extractor *x)
{
	const char *tmp = access("/run", W_OK) == 0 ? "/run" : "/tmp";
	char sub[80];

	x->life = -1;
	snprintf(x->dir, sizeof(x->dir), "%s/prof-bpf.XXXXXX", tmp);
	if (!mkdtemp(x->dir)) {
		x->dir[0] = '\0';
		return -errno;
	}
	snprintf(sub, sizeof(sub), "%s/bpf", x->dir);
	return mkdir(sub, 0700) < 0 ? -errno : 0;
}

int extractor_start(struct extractor *x)
{
	char path[4096], life[16];
	int pipe_fds[2];
	int r = toolpath_find("prof-deltas", path, sizeof(path));

	if (r)
		return r;
	/* Our end is close-on-exec; the child inherits the other one. */
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	if (fcntl(pipe_fds[0], F_SETFD, 0) < 0) {
		r = -errno;
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		return r;
	}
	snprintf(life, sizeof(life), "%d", pipe_fds[0]);
	const char *const argv[] = { "prof-deltas", "--run-dir", x->dir, "--life-fd", life, NULL };
	char *envp[] = { NULL };
	posix_spawnattr_t attr;
	sigset_t none;
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	/* In its own session, so that Ctrl-C reaches only this process. */
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	r = -posix_spawn(&x->pid, path, NULL, &attr, (char *const *)argv, envp);
	posix_spawnattr_destroy(&attr);
	close(pipe_fds[0]);
	if (r) {
		x->pid = 0;
		close(pipe_fds[1]);
		return r;
	}
	x->life = pipe_fds[1];
	return 0;
}

static void remove_folder(const char *dir)
{
	char sub[80], path[400];

	snprintf(sub, sizeof(sub), "%s/bpf", dir);
	DIR *d = opendir(sub);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		snprintf(path, sizeof(path), "%s/%s", sub, e->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(sub);
	rmdir(dir);
}

void extractor_stop(struct extractor *x)
{
	if (x->pid > 0) {
		close(x->life);
		for (int i = 0; i < 100 && waitpid(x->pid, NULL, WNOHANG) == 0; i++) {
			if (i == 50)
				kill(x->pid, SIGKILL);
			usleep(10000);
		}
		x->pid = 0;
	}
	if (x->dir[0])
		remove_folder(x->dir);
	x->dir[0] = '\0';
}
