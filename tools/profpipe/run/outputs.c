/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/log.h"

#define GROUPS_MAX 1024

struct user {
	bool changed;
	int count;
	gid_t groups[GROUPS_MAX]; /* our own, to be restored */
};

static bool number(const char *name, unsigned long *ret)
{
	const char *text = getenv(name);
	char *end;

	if (!text || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*ret = strtoul(text, &end, 10);
	return !errno && !*end && *ret < UINT32_MAX;
}

/* Becomes the user of sudo, for the file system's checks, if we are root. */
static int become(struct user *u)
{
	unsigned long uid, gid;
	gid_t groups[GROUPS_MAX];
	int count = GROUPS_MAX;

	u->changed = false;
	if (geteuid() != 0 || !getenv("SUDO_UID"))
		return 0;
	/* Without a number we would stay root, which this must prevent. */
	if (!number("SUDO_UID", &uid))
		return -EINVAL;
	if (uid == 0)
		return 0;
	const struct passwd *p = getpwuid((uid_t)uid);
	if (!number("SUDO_GID", &gid)) {
		if (!p || getenv("SUDO_GID"))
			return -EINVAL;
		gid = p->pw_gid;
	}
	if (!p || getgrouplist(p->pw_name, (gid_t)gid, groups, &count) < 0) {
		groups[0] = (gid_t)gid;
		count = 1;
	}
	u->count = getgroups(GROUPS_MAX, u->groups);
	if (u->count < 0)
		return -errno;
	u->changed = true;
	if (setgroups((size_t)count, groups) < 0 || setegid((gid_t)gid) < 0 ||
	    seteuid((uid_t)uid) < 0)
		return -errno;
	return 0;
}

static void come_back(const struct user *u)
{
	const int saved = errno;

	/* If we cannot become root again, ending is better than a half-changed identity. */
	if (u->changed &&
	    (seteuid(0) < 0 || setegid(getgid()) < 0 || setgroups((size_t)u->count, u->groups) < 0))
		abort();
	errno = saved;
}

static void say_wait(const char *path)
{
	log_warning("%s: the pipe has no reader yet; the run begins when it has one", path);
}

int output_open(struct outfile *o, const char *path, mode_t mode, bool grows)
{
	const struct outfile_how how = { .mode = mode, .grows = grows, .on_wait = say_wait };
	struct user u;

	*o = (struct outfile)OUTFILE_NONE;
	if (outfile_is_handed(path))
		return outfile_open(o, path, &how);
	int r = become(&u);

	if (!r)
		r = outfile_open(o, path, &how);
	come_back(&u);
	return r;
}

int output_end(struct outfile *o, bool whole)
{
	struct user u;
	int r = 0;

	if (o->fd < 0 || o->kind < OUTFILE_PLACE)
		return outfile_end(o, whole);
	r = become(&u);
	if (!r)
		r = outfile_end(o, whole);
	come_back(&u);
	return r;
}

void output_drop(struct outfile *o)
{
	struct user u;

	if (o->fd < 0)
		return;
	if (!become(&u))
		outfile_drop(o);
	come_back(&u);
}

bool output_conclude(struct outfile *o, bool whole)
{
	const bool hidden = o->fd >= 0 && o->kind == OUTFILE_HIDDEN;
	const int r = output_end(o, whole);

	if (r && o->hidden[0])
		log_error("%s: cannot be replaced: %s; the new file lies beside it as %s", o->path,
			  strerror(-r), o->hidden);
	else if (r)
		log_error("%s: %s", o->path, strerror(-r));
	if (hidden && (r || !whole))
		log_warning(o->ino ? "%s: keeps its old contents" : "%s: is not written", o->path);
	return !r;
}

const char *output_error(int r)
{
	return r == -EINVAL ? "SUDO_UID or SUDO_GID is not a number; unset them, or use sudo"
			    : outfile_error(r);
}

int input_open(const char *path, int *ret_fd)
{
	struct user u;
	struct stat st;

	if (strcmp(path, "-") == 0) {
		*ret_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return *ret_fd < 0 ? -errno : 0;
	}
	int r = become(&u), fd = -1;

	if (!r) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		r = fd < 0 ? -errno : 0;
	}
	come_back(&u);
	if (r)
		return r;
	if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)) {
		close(fd);
		return -EISDIR;
	}
	*ret_fd = fd;
	return 0;
}
