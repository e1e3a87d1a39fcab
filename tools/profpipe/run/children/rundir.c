/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/children/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "profpipe."
#define DEPTH_MAX 8 /* levels of folders to remove; an attacker in a tool may have made them */

static const struct {
	const char *name;
	enum deploy_tool owner;
} listeners[] = { { "bpf", DEPLOY_BPF }, { "export", DEPLOY_EXPORT } };

/* Empties an open folder and closes it. Follows no symbolic link: an attacker in a tool may have
 * made the contents. Root takes ownership of the folder, because a root that cannot override modes
 * needs it. */
static void empty(int dir, int depth)
{
	(void)!fchown(dir, geteuid(), (gid_t)-1);
	DIR *in = fdopendir(dir);

	if (!in) {
		close(dir);
		return;
	}
	for (struct dirent *e = readdir(in); e; e = readdir(in)) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    unlinkat(dirfd(in), e->d_name, 0) == 0)
			continue;
		const int sub = depth ? openat(dirfd(in), e->d_name,
					       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
				      : -1;

		if (sub >= 0)
			empty(sub, depth - 1);
		unlinkat(dirfd(in), e->d_name, AT_REMOVEDIR);
	}
	closedir(in);
}

/* Whether a run made the folder, by its visible properties: another program may use such a name
 * too. A launcher that was killed early leaves an empty folder. Reads the descriptor from its
 * beginning. */
static bool is_a_run(int dir, const char *name, const struct stat *st)
{
	const mode_t mode = st->st_mode & 07777;
	bool foreign = strlen(name) != strlen(PREFIX "XXXXXX") || (mode != 0711 && mode != 0700);
	const int again = foreign ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *in = again < 0 ? NULL : fdopendir(again);
	struct stat sub;

	if (!in) {
		if (again >= 0)
			close(again);
		return false;
	}
	for (struct dirent *e = readdir(in); e && !foreign; e = readdir(in)) {
		bool listener = false;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		for (size_t i = 0; i < sizeof(listeners) / sizeof(listeners[0]); i++)
			listener |= strcmp(e->d_name, listeners[i].name) == 0;
		foreign = !listener || fstatat(dir, e->d_name, &sub, AT_SYMLINK_NOFOLLOW) < 0 ||
			  !S_ISDIR(sub.st_mode) ||
			  ((sub.st_mode & 07777) != 0710 && (sub.st_mode & 07777) != 0700);
	}
	closedir(in);
	return !foreign;
}

/* Removes the folders of ended runs, which nobody locks any more. */
static void sweep(const char *parent)
{
	struct stat st;
	DIR *d = opendir(parent);

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		const int dir = openat(dirfd(d), e->d_name,
				       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

		if (dir < 0)
			continue;
		if (fstat(dir, &st) < 0 || st.st_uid != geteuid() ||
		    !is_a_run(dir, e->d_name, &st) || flock(dir, LOCK_EX | LOCK_NB) < 0) {
			close(dir);
			continue;
		}
		empty(dir, DEPTH_MAX);
		unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

/* Makes a folder, and locks it before another launcher can mistake it for an old one. */
static int make_locked(struct rundir *d, const char *parent)
{
	struct stat there, ours;

	for (int tries = 0; tries < 5; tries++) {
		const int n = snprintf(d->path, sizeof(d->path), "%s/" PREFIX "XXXXXX", parent);

		if (n < 0 || (size_t)n >= sizeof(d->path))
			return -ENAMETOOLONG;
		if (!mkdtemp(d->path))
			return -errno;
		d->lock = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (d->lock >= 0 && flock(d->lock, LOCK_EX | LOCK_NB) == 0 &&
		    fstat(d->lock, &ours) == 0 && lstat(d->path, &there) == 0 &&
		    there.st_ino == ours.st_ino && there.st_dev == ours.st_dev)
			return 0;
		if (d->lock >= 0)
			close(d->lock);
		d->lock = -1;
	}
	return -EBUSY;
}

static int furnish(const struct rundir *d, const struct identity *who)
{
	if (fchmod(d->lock, 0711) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(listeners) / sizeof(listeners[0]); i++) {
		const char *name = listeners[i].name;

		if (mkdirat(d->lock, name, 0700) < 0 || fchmodat(d->lock, name, 0710, 0) < 0)
			return -errno;
		if (who->separate && fchownat(d->lock, name, who->uid[listeners[i].owner], who->gid,
					      AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	}
	return 0;
}

int rundir_make(struct rundir *d, const struct identity *who)
{
	const char *const parents[] = { "/run", getenv("TMPDIR"), "/tmp" };
	int r = -ENOENT;

	*d = RUNDIR_NONE;
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]) && r; i++) {
		if (!parents[i] || parents[i][0] != '/')
			continue;
		sweep(parents[i]);
		r = make_locked(d, parents[i]);
	}
	if (r) {
		d->path[0] = '\0';
		return r;
	}
	r = furnish(d, who);
	if (r)
		rundir_remove(d);
	return r;
}

void rundir_clean(const struct rundir *d, const struct identity *who, enum deploy_tool tool)
{
	for (size_t i = 0; i < sizeof(listeners) / sizeof(listeners[0]); i++) {
		if (listeners[i].owner != tool)
			continue;
		const int dir = openat(d->lock, listeners[i].name,
				       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

		if (dir < 0)
			continue;
		empty(dir, DEPTH_MAX);
		if (who->separate)
			(void)!fchownat(d->lock, listeners[i].name, who->uid[tool], who->gid,
					AT_SYMLINK_NOFOLLOW);
	}
}

void rundir_remove(struct rundir *d)
{
	if (!d->path[0])
		return;
	const int dir = fcntl(d->lock, F_DUPFD_CLOEXEC, 3);

	if (dir >= 0)
		empty(dir, DEPTH_MAX);
	rmdir(d->path);
	close(d->lock);
	*d = RUNDIR_NONE;
}
