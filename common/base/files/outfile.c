/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/openat2.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/text/decimal.h"

#define TRIES 3
#define WRITE (O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW)
/* Our own errors, which no system call used here returns. */
#define STRANGERS (-EKEYREJECTED)
#define MOUNTED (-EBUSY)

/* The existing file of that name, if there is any. */
struct found {
	bool any, mounted;
	mode_t mode;
	uid_t uid;
	dev_t dev;
	ino_t ino;
};

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
		uint64_t fd;

		if (strncmp(path, folders[i], n) == 0 && decimal_parse(path + n, &fd) &&
		    strlen(path + n) < 7)
			return (int)fd;
	}
	return -1;
}

bool outfile_is_handed(const char *path)
{
	return handed_fd(path) >= 0;
}

static int open_handed(struct outfile *o, int fd)
{
	struct stat st;
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	if (fstat(fd, &st) < 0)
		return -errno;
	o->kind = OUTFILE_HANDED;
	o->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	o->dev = st.st_dev;
	o->ino = st.st_ino;
	return o->fd < 0 ? -errno : 0;
}

/* --- the folder and the file in it --- */

/* Opens the folder of the path without any symbolic link on the way (openat2, Linux 5.6). */
static int open_folder(struct outfile *o)
{
	const struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS };
	const char *slash = strrchr(o->path, '/');
	const char *name = slash ? slash + 1 : o->path;
	char folder[PATH_MAX];

	if (!*name)
		return *o->path ? -EISDIR : -ENOENT;
	if (strlen(name) > NAME_MAX || strlen(o->path) >= sizeof(folder))
		return -ENAMETOOLONG;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - o->path) + 1 : 1,
		 slash ? o->path : ".");
	strcpy(o->name, name);
	o->folder = (int)syscall(SYS_openat2, AT_FDCWD, folder, &how, sizeof(how));
	return o->folder < 0 ? -errno : 0;
}

/* Does not ask a file server, which may belong to another user. */
static int find(const struct outfile *o, struct found *ret)
{
	struct statx x;

	*ret = (struct found){ 0 };
	if (statx(o->folder, o->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		  STATX_BASIC_STATS, &x) < 0)
		return errno == ENOENT ? 0 : -errno;
	*ret = (struct found){
		.any = true,
		/* If the kernel does not tell whether it is a mount point, the final rename fails
		 * with EBUSY. */
		.mounted = x.stx_attributes_mask & x.stx_attributes & STATX_ATTR_MOUNT_ROOT,
		.mode = x.stx_mode,
		.uid = x.stx_uid,
		.dev = makedev(x.stx_dev_major, x.stx_dev_minor),
		.ino = x.stx_ino,
	};
	return 0;
}

/* Refuses what another user may have put into a sticky folder in order to get the output. A
 * regular file of another user is only replaced, which root and the folder's owner may do. */
static int check_sticky(const struct outfile *o, const struct found *f)
{
	struct stat folder;

	if (fstat(o->folder, &folder) < 0)
		return -errno;
	if (!(folder.st_mode & S_ISVTX))
		return 0;
	if (f->mounted)
		return MOUNTED;
	if (f->uid == geteuid())
		return 0;
	if (S_ISREG(f->mode))
		return geteuid() == 0 || folder.st_uid == geteuid() ? 0 : STRANGERS;
	return f->uid == folder.st_uid ? 0 : STRANGERS;
}

static int check_found(const struct outfile *o, const struct found *f)
{
	if (S_ISLNK(f->mode))
		return -ELOOP;
	if (S_ISDIR(f->mode))
		return -EISDIR;
	if (!S_ISREG(f->mode) && !S_ISFIFO(f->mode) && !S_ISCHR(f->mode))
		return -ENOTSUP;
	/* A file without write permission must not be replaced either. */
	if (S_ISREG(f->mode) && faccessat(o->folder, o->name, W_OK, AT_EACCESS) < 0)
		return -errno;
	return check_sticky(o, f);
}

/* Opens the file that was found, and no other one that now has the name. */
static int open_found(struct outfile *o, const struct found *f, const struct outfile_how *how)
{
	struct stat st;

	o->fd = openat(o->folder, o->name, WRITE | O_NONBLOCK);
	/* It is a FIFO without a reader, which may still come. */
	if (o->fd < 0 && errno == ENXIO && S_ISFIFO(f->mode)) {
		if (how->on_wait)
			how->on_wait(o->path);
		o->fd = openat(o->folder, o->name, WRITE);
	}
	if (o->fd < 0 || fstat(o->fd, &st) < 0)
		return -errno;
	if (st.st_dev != f->dev || st.st_ino != f->ino)
		return -EAGAIN;
	o->kind = S_ISREG(f->mode) ? OUTFILE_PLACE : OUTFILE_DEVICE;
	const int flags = fcntl(o->fd, F_GETFL);

	return flags < 0 || fcntl(o->fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

/* --- the new file --- */

static void choose_name(struct outfile *o)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint64_t)getpid() << 32 | (uint64_t)o->fd;
	snprintf(o->hidden, sizeof(o->hidden), ".profpipe.%016llx", (unsigned long long)random);
}

static int open_hidden(struct outfile *o)
{
	char link[40];

	o->kind = OUTFILE_HIDDEN;
	o->fd = openat(o->folder, ".", O_WRONLY | O_CLOEXEC | O_NOCTTY | O_TMPFILE, 0600);
	if (o->fd >= 0) {
		/* Without /proc the file could never get a name. */
		snprintf(link, sizeof(link), "/proc/self/fd/%d", o->fd);
		if (faccessat(AT_FDCWD, link, F_OK, AT_EACCESS) == 0)
			return 0;
		close(o->fd);
	}
	choose_name(o);
	o->fd = openat(o->folder, o->hidden, WRITE | O_CREAT | O_EXCL, 0600);
	if (o->fd >= 0)
		return 0;
	o->hidden[0] = '\0';
	return -errno;
}

static int open_new(struct outfile *o, const struct found *f, const struct outfile_how *how)
{
	struct stat st;
	int r = 0;

	if (how->grows && !f->any) {
		o->kind = OUTFILE_NEW;
		o->fd = openat(o->folder, o->name, WRITE | O_CREAT | O_EXCL, 0600);
		r = o->fd >= 0 ? 0 : errno == EEXIST ? -EAGAIN : -errno;
	} else {
		r = open_hidden(o);
	}
	if (r || fstat(o->fd, &st) < 0)
		return r ? r : -errno;
	/* The umask may have removed bits. Some file systems have no modes at all. */
	if ((st.st_mode & 07777) != how->mode)
		(void)fchmod(o->fd, how->mode);
	if (o->kind == OUTFILE_NEW) {
		o->dev = st.st_dev;
		o->ino = st.st_ino;
	}
	return 0;
}

static void close_all(struct outfile *o)
{
	if (o->fd >= 0)
		close(o->fd);
	if (o->folder >= 0)
		close(o->folder);
	if (o->keeper >= 0)
		close(o->keeper);
	o->fd = o->folder = o->keeper = -1;
}

static int open_path(struct outfile *o, const struct outfile_how *how)
{
	struct found f;
	int r = find(o, &f);

	if (!r && f.any)
		r = check_found(o, &f);
	if (r)
		return r;
	o->dev = f.dev;
	o->ino = f.ino;
	return f.any && (f.mounted || !S_ISREG(f.mode)) ? open_found(o, &f, how)
							: open_new(o, &f, how);
}

int outfile_open(struct outfile *o, const char *path, const struct outfile_how *how)
{
	const int handed = handed_fd(path);

	*o = (struct outfile)OUTFILE_NONE;
	o->path = path;
	if (handed >= 0)
		return open_handed(o, handed);
	int r = open_folder(o);

	if (!r)
		r = -EAGAIN;
	/* Another program may change what the name leads to, so try again. */
	for (int tries = 0; r == -EAGAIN && tries < TRIES; tries++) {
		if (o->fd >= 0)
			close(o->fd);
		o->fd = -1;
		r = open_path(o, how);
	}
	if (r)
		close_all(o);
	return r;
}

bool outfile_same(const struct outfile *a, const struct outfile *b)
{
	struct stat one, other;

	if (a->fd < 0 || b->fd < 0)
		return false;
	if (a->kind == OUTFILE_HANDED || b->kind == OUTFILE_HANDED || a->kind == OUTFILE_DEVICE ||
	    b->kind == OUTFILE_DEVICE)
		return false;
	return strcmp(a->name, b->name) == 0 && fstat(a->folder, &one) == 0 &&
	       fstat(b->folder, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

/* --- the end --- */

static void sync_folder(const struct outfile *o)
{
	const int fd = openat(o->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* The file exists even if this fails, because the folder may not be readable. */
	if (fd < 0)
		return;
	(void)fsync(fd);
	close(fd);
}

static void remove_hidden(struct outfile *o)
{
	if (o->hidden[0])
		unlinkat(o->folder, o->hidden, 0);
	o->hidden[0] = '\0';
}

static int link_hidden(struct outfile *o)
{
	char link[40];

	if (o->hidden[0])
		return 0;
	choose_name(o);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", o->fd);
	if (linkat(AT_FDCWD, link, o->folder, o->hidden, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	o->hidden[0] = '\0';
	return -errno;
}

/* Ends a regular file that we made. */
static int end_file(struct outfile *o, bool whole)
{
	const off_t at = lseek(o->fd, 0, SEEK_CUR);
	int r = 0;

	if (o->kind == OUTFILE_HIDDEN && !whole) {
		remove_hidden(o);
		return 0;
	}
	/* The tool that wrote the file shares our offset. Some file systems report a full disk only
	 * when the data must be written. */
	if (at < 0 || ftruncate(o->fd, at) < 0 || fdatasync(o->fd) < 0)
		r = -errno;
	if (o->kind == OUTFILE_PLACE)
		return r;
	if (o->kind == OUTFILE_HIDDEN) {
		if (!r)
			r = link_hidden(o);
		if (r) {
			remove_hidden(o);
			return r;
		}
		/* If this fails, the complete file stays under its temporary name. */
		r = renameat(o->folder, o->hidden, o->folder, o->name) < 0 ? -errno : 0;
		if (!r)
			o->hidden[0] = '\0';
	}
	sync_folder(o);
	return r;
}

static void drop_file(struct outfile *o)
{
	struct stat st;

	remove_hidden(o);
	if (o->kind == OUTFILE_NEW && fstatat(o->folder, o->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == o->dev && st.st_ino == o->ino)
		unlinkat(o->folder, o->name, 0);
}

/* --- the keeper --- */

enum order { ORDER_DROP, ORDER_CUT, ORDER_WHOLE };

struct answer {
	int r;
	char hidden[sizeof(((struct outfile *)0)->hidden)];
};

/* The main function of the keeper: waits for one order. If the other side dies first, removes an
 * incomplete file. */
static void keep(struct outfile *o, int socket)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	struct answer a = { 0 };
	uint8_t order;
	ssize_t n;

	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	for (int fd = 0, last = (int)sysconf(_SC_OPEN_MAX); fd < last && fd < 1024; fd++)
		if (fd != o->fd && fd != o->folder && fd != socket)
			close(fd);
	do
		n = read(socket, &order, sizeof(order));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(order))
		(void)(o->kind == OUTFILE_HIDDEN ? end_file(o, false) : 0);
	else if (order == ORDER_DROP)
		drop_file(o);
	else
		a.r = end_file(o, order == ORDER_WHOLE);
	memcpy(a.hidden, o->hidden, sizeof(a.hidden));
	(void)!write(socket, &a, sizeof(a));
	_exit(EXITS_DONE);
}

int outfile_hand_over(struct outfile *o)
{
	int ends[2];

	if (o->kind < OUTFILE_PLACE)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	const pid_t pid = fork();
	const int r = pid < 0 ? -errno : 0;

	if (pid == 0)
		keep(o, ends[1]);
	close(ends[1]);
	if (r) {
		close(ends[0]);
		return r;
	}
	o->keeper = ends[0];
	close(o->folder);
	o->folder = -1;
	return 0;
}

static int ask_keeper(struct outfile *o, enum order order)
{
	const uint8_t byte = (uint8_t)order;
	struct answer a;
	ssize_t n;

	do
		n = write(o->keeper, &byte, sizeof(byte));
	while (n < 0 && errno == EINTR);
	do
		n = n < 0 ? n : read(o->keeper, &a, sizeof(a));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(a))
		return n < 0 ? -errno : -ECONNRESET;
	memcpy(o->hidden, a.hidden, sizeof(o->hidden));
	return a.r;
}

int outfile_end(struct outfile *o, bool whole)
{
	int r = 0;

	if (o->fd >= 0 && o->keeper >= 0)
		r = ask_keeper(o, whole ? ORDER_WHOLE : ORDER_CUT);
	else if (o->fd >= 0 && o->kind >= OUTFILE_PLACE)
		r = end_file(o, whole);
	/* A network file system may report a full disk only now. */
	if (o->fd >= 0 && close(o->fd) < 0 && !r)
		r = -errno;
	o->fd = -1;
	close_all(o);
	return r;
}

void outfile_drop(struct outfile *o)
{
	if (o->fd >= 0 && o->keeper >= 0)
		(void)ask_keeper(o, ORDER_DROP);
	else if (o->fd >= 0 && o->kind > OUTFILE_PLACE)
		drop_file(o);
	close_all(o);
}

const char *outfile_error(int r)
{
	switch (r) {
	case STRANGERS:
		return "belongs to another user, in a folder where anybody may put files; "
		       "name another place";
	case MOUNTED:
		return "something is mounted on it, in a folder where anybody may put files; "
		       "name another place";
	case -ELOOP:
		return "is a symbolic link, or lies behind one; name the file it leads to";
	case -EISDIR:
		return "is a folder; name a file in it";
	case -ENOTSUP:
	case -ENXIO:
		return "is neither a file, a pipe nor a character device; name a file";
	case -EBADF:
		return "is closed, or not open for writing; name a file";
	case -ENOENT:
		return "there is no such folder; make it first";
	case -EACCES:
	case -EPERM:
		return "permission denied; name a place that you may write to";
	}
	static char text[128];
	const char *remedy = r == -ENOSPC || r == -EDQUOT
				     ? "make room, or name a place on another file system"
			     : r == -EFBIG ? "raise the limit of a file's size (ulimit -f)"
			     : r == -EMFILE || r == -ENFILE
				     ? "raise the limit of open files (ulimit -n, fs.file-max)"
			     : r == -ENOMEM ? "free memory on this host"
					    : "name another place";

	snprintf(text, sizeof(text), "%s; %s", strerror(-r), remedy);
	return text;
}
