/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
	gid_t theirs[GROUPS_MAX];
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
	if (!p || getgrouplist(p->pw_name, (gid_t)gid, theirs, &count) < 0) {
		theirs[0] = (gid_t)gid;
		count = 1;
	}
	u->count = getgroups(GROUPS_MAX, u->groups);
	if (u->count < 0)
		return -errno;
	u->changed = true;
	if (setgroups((size_t)count, theirs) < 0 || setegid((gid_t)gid) < 0 ||
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

/* N of /dev/fd/N and the like, or -1. */
static int handed_fd(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };

	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const size_t n = strlen(folders[i]);
		const char *digits = path + n;

		if (strncmp(path, folders[i], n) == 0 && *digits &&
		    strspn(digits, "0123456789") == strlen(digits) && strlen(digits) < 7)
			return atoi(digits);
	}
	return -1;
}

/* Opens a path without any symbolic link in it (openat2, Linux 5.6). */
static int open_plain(const char *path, int flags)
{
	const struct open_how how = { .flags = (unsigned)flags,
				      .mode = flags & O_CREAT ? 0666 : 0,
				      .resolve = RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

static int open_path(struct output *o, const char *path)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;

	for (int tries = 0; tries < 3; tries++) {
		o->fd = open_plain(path, flags | O_NONBLOCK);
		/* A pipe, whose reader may still come. */
		if (o->fd < 0 && errno == ENXIO) {
			log_warning(
				"%s: the pipe has no reader yet; the run begins when it has one",
				path);
			o->fd = open_plain(path, flags);
		}
		if (o->fd >= 0 || errno != ENOENT)
			break;
		o->fd = open_plain(path, flags | O_CREAT | O_EXCL);
		o->created = o->fd >= 0;
		if (o->fd >= 0 || errno != EEXIST)
			break;
	}
	return o->fd < 0 ? -errno : 0;
}

/* Looks at the opened file. */
static int look_at(struct output *o)
{
	struct stat st;

	if (fstat(o->fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
		return -ENOTSUP;
	o->regular = S_ISREG(st.st_mode);
	o->dev = st.st_dev;
	o->ino = st.st_ino;
	const int flags = fcntl(o->fd, F_GETFL);

	return flags < 0 || fcntl(o->fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

/* --- the file that replaces an old one --- */

/* Finds the path's last part and opens its folder. False: that failed. */
static bool open_folder(struct output *o)
{
	const char *slash = strrchr(o->path, '/');
	const char *name = slash ? slash + 1 : o->path;
	char folder[PATH_MAX];
	struct stat st;

	if (!*name || strlen(name) > NAME_MAX)
		return false;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - o->path) + 1 : 1,
		 slash ? o->path : ".");
	strcpy(o->name, name);
	o->folder = open_plain(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return o->folder >= 0 && fstatat(o->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == o->dev && st.st_ino == o->ino;
}

/* Whether something is mounted on the file, as containers do. If the kernel does not say, the
 * rename at the end fails with EBUSY. */
static bool is_mounted_on(int fd)
{
	struct statx x;

	return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x) == 0 &&
	       x.stx_attributes_mask & x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* Chooses an unused name. */
static void choose_name(struct output *o)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint64_t)getpid() << 32 | (uint64_t)o->ino;
	snprintf(o->beside, sizeof(o->beside), ".profpipe.%016llx", (unsigned long long)random);
}

static int open_beside(struct output *o)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
	int fd = openat(o->folder, ".", flags | O_TMPFILE, 0600);

	if (fd >= 0)
		return fd;
	choose_name(o);
	fd = openat(o->folder, o->beside, flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		o->beside[0] = '\0';
	return fd;
}

/* Runs as the user. */
static void drop_beside(struct output *o)
{
	if (o->beside[0])
		unlinkat(o->folder, o->beside, 0);
	o->beside[0] = '\0';
}

/* Makes a new file for o->fd, so that the old one keeps its contents. Changes nothing if that is
 * impossible. Runs as the user. */
static void write_beside(struct output *o)
{
	struct stat st;

	if (!o->regular || o->created || fstat(o->fd, &st) < 0 || st.st_size == 0 ||
	    st.st_nlink != 1 || is_mounted_on(o->fd) || !open_folder(o))
		return;

	const int fd = open_beside(o);
	struct stat own;

	if (fd < 0)
		return;
	if (fstat(fd, &own) < 0 ||
	    ((own.st_uid != st.st_uid || own.st_gid != st.st_gid) &&
	     fchown(fd, st.st_uid, st.st_gid) < 0) ||
	    fchmod(fd, st.st_mode & 07777) < 0) {
		drop_beside(o);
		close(fd);
		return;
	}
	close(o->fd);
	o->fd = fd;
	o->replaces = true;
}

/* Runs as the user. */
static int take_place(struct output *o)
{
	char link[40];

	/* Some file systems report a full disk only now. */
	if (fdatasync(o->fd) < 0)
		return -errno;
	if (!o->beside[0]) {
		choose_name(o);
		snprintf(link, sizeof(link), "/proc/self/fd/%d", o->fd);
		if (linkat(AT_FDCWD, link, o->folder, o->beside, AT_SYMLINK_FOLLOW) < 0) {
			o->beside[0] = '\0';
			return -errno;
		}
	}
	if (renameat(o->folder, o->beside, o->folder, o->name) < 0)
		return -errno;
	o->beside[0] = '\0';
	return 0;
}

static int open_handed(struct output *o, int fd)
{
	struct stat st;
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	if (fstat(fd, &st) < 0)
		return -errno;
	o->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	o->dev = st.st_dev;
	o->ino = st.st_ino;
	return o->fd < 0 ? -errno : 0;
}

int output_open(struct output *o, const char *path)
{
	struct user u;
	const int handed = handed_fd(path);

	*o = OUTPUT_NONE;
	o->path = path;
	if (handed >= 0)
		return open_handed(o, handed);
	int r = become(&u);

	if (!r)
		r = open_path(o, path);
	if (!r)
		r = look_at(o);
	if (!r)
		write_beside(o);
	come_back(&u);
	if (r)
		output_drop(o);
	return r;
}

bool output_same(const struct output *a, const struct output *b)
{
	return a->regular && b->regular && a->dev == b->dev && a->ino == b->ino;
}

static int close_fd(struct output *o)
{
	int r = o->fd >= 0 && close(o->fd) < 0 ? -errno : 0;

	o->fd = -1;
	if (o->folder >= 0)
		close(o->folder);
	o->folder = -1;
	return r;
}

int output_end(struct output *o, bool whole)
{
	struct user u;
	int r = 0;

	if (o->replaces) {
		r = become(&u);
		if (!r && whole)
			r = take_place(o);
		if (o->beside[0])
			drop_beside(o);
		come_back(&u);
	}
	/* The tool that wrote the file shares our offset. */
	if (o->fd >= 0 && o->regular && !o->replaces) {
		const off_t at = lseek(o->fd, 0, SEEK_CUR);

		r = at < 0 || ftruncate(o->fd, at) < 0 ? -errno : 0;
	}
	const int closed = close_fd(o);

	return r ? r : closed;
}

void output_drop(struct output *o)
{
	struct user u;
	struct stat st;

	if (o->fd >= 0 && o->replaces) {
		(void)output_end(o, false);
		return;
	}
	if (o->fd >= 0 && o->created) {
		if (!become(&u) && lstat(o->path, &st) == 0 && st.st_dev == o->dev &&
		    st.st_ino == o->ino)
			unlink(o->path);
		come_back(&u);
	}
	close_fd(o);
}

const char *output_error(int r)
{
	switch (r) {
	case -ELOOP:
		return "is a symbolic link, or lies behind one; name the file it leads to";
	case -EINVAL:
		return "SUDO_UID or SUDO_GID is not a number; unset them, or use sudo";
	case -EISDIR:
		return "is a folder; name a file in it";
	case -ENOTSUP:
	case -ENXIO:
		return "is neither a file, a pipe nor a character device";
	case -EBADF:
		return "is closed, or not open for writing; name a file";
	case -ENOENT:
		return "there is no such folder; make it first";
	case -EACCES:
	case -EPERM:
		return "permission denied; name a place that you may write to";
	default:
		return strerror(-r);
	}
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
