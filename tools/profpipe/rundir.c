/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/profpipe/rundir.h"

static const struct {
	const char *name;
	enum deploy_tool owner;
} listeners[] = { { "bpf", DEPLOY_BPF }, { "symd", DEPLOY_SYMD } };

int rundir_make(struct rundir *d, const struct identity *who)
{
	snprintf(d->path, sizeof(d->path), "%s/profpipe.XXXXXX", access("/run", W_OK) == 0 ? "/run" : "/tmp");
	if (!mkdtemp(d->path)) {
		d->path[0] = '\0';
		return -errno;
	}
	if (chmod(d->path, 0711) < 0)
		return -errno;
	int dir = open(d->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	int r = 0;
	for (size_t i = 0; i < sizeof(listeners) / sizeof(listeners[0]) && !r; i++) {
		if (mkdirat(dir, listeners[i].name, 0700) < 0 ||
		    fchownat(dir, listeners[i].name, who->uid[listeners[i].owner], who->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
		    fchmodat(dir, listeners[i].name, 0710, 0) < 0)
			r = -errno;
	}
	close(dir);
	return r;
}

/* Nothing below is followed or entered that is not ours: the folders belong to tools that may have been taken over. */
void rundir_remove(struct rundir *d)
{
	if (!d->path[0])
		return;
	int dir = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	for (size_t i = 0; dir >= 0 && i < sizeof(listeners) / sizeof(listeners[0]); i++) {
		int sub = openat(dir, listeners[i].name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		DIR *in = sub >= 0 ? fdopendir(sub) : NULL;

		for (struct dirent *e = in ? readdir(in) : NULL; e; e = readdir(in))
			unlinkat(sub, e->d_name, 0);
		if (in)
			closedir(in);
		unlinkat(dir, listeners[i].name, AT_REMOVEDIR);
	}
	if (dir >= 0)
		close(dir);
	rmdir(d->path);
	d->path[0] = '\0';
}
