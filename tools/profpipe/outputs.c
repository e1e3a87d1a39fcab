/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/span.h"
#include "tools/profpipe/outputs.h"

struct user {
	uid_t uid;
	gid_t gid;
	bool changed;
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

/* Becomes the user who called sudo, for the file system's checks; as far as we are root. */
static int become(struct user *u)
{
	unsigned long uid, gid;

	*u = (struct user){ .uid = geteuid(), .gid = getegid() };
	if (u->uid != 0 || !number("SUDO_UID", &uid) || !number("SUDO_GID", &gid) || uid == 0)
		return 0;
	gid_t group = (gid_t)gid;
	if (setgroups(1, &group) < 0 || setegid(group) < 0 || seteuid((uid_t)uid) < 0)
		return -errno;
	u->changed = true;
	return 0;
}

static void come_back(const struct user *u)
{
	if (!u->changed)
		return;
	/* Root again or nothing: going on half changed would be worse than ending. */
	if (seteuid(u->uid) < 0 || setegid(u->gid) < 0 || setgroups(0, NULL) < 0)
		abort();
}

static int open_as_user(const char *path, int flags, int *ret_fd)
{
	struct user u;
	int r = become(&u);

	if (!r) {
		*ret_fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);
		r = *ret_fd < 0 ? -errno : 0;
	}
	come_back(&u);
	return r;
}

int output_open(const char *path, int *ret_fd)
{
	struct stat st;
	int fd, r;

	if (strcmp(path, "-") == 0) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return -errno;
		*ret_fd = fd;
		return 0;
	}
	r = open_as_user(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, &fd);
	if (r)
		return r;
	if (fstat(fd, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))) {
		close(fd);
		return -ENOTSUP;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	*ret_fd = fd;
	return 0;
}

int output_begin(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* Standard output may be a file that others append to: it is left as it is. */
	if (!S_ISREG(st.st_mode) || (fcntl(fd, F_GETFL) & O_APPEND) || lseek(fd, 0, SEEK_CUR) != 0)
		return 0;
	return ftruncate(fd, 0) < 0 ? -errno : 0;
}

int input_open(const char *path, int *ret_fd)
{
	if (strcmp(path, "-") == 0) {
		*ret_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return *ret_fd < 0 ? -errno : 0;
	}
	return open_as_user(path, O_RDONLY, ret_fd);
}
