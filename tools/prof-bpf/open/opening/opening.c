/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of request goes through open_checked. It first gets an O_PATH descriptor and checks
 * what the kernel already knows. Only then does it open the file itself.
 */
#include "tools/prof-bpf/open/opening/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "tools/prof-bpf/open/opening/rooted.h"
#include "tools/prof-bpf/open/opening/sealed.h"

#define WRITTEN_SLACK_NS 2000000000u /* file systems round times by at most two seconds */
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif

static int file_stat(int fd, unsigned sync, struct opener_file *ret)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | sync, STATX_BASIC_STATS, &x))
		return -errno;
	*ret = (struct opener_file){
		.dev = (uint64_t)x.stx_dev_major << 32 | x.stx_dev_minor,
		.inode = x.stx_ino,
		.ctime_ns = (uint64_t)x.stx_ctime.tv_sec * 1000000000u + x.stx_ctime.tv_nsec,
		.mtime_ns = (uint64_t)x.stx_mtime.tv_sec * 1000000000u + x.stx_mtime.tv_nsec,
		.size = x.stx_size,
		.uid = x.stx_uid,
		.mode = x.stx_mode,
		.links = x.stx_nlink,
	};
	return S_ISREG(x.stx_mode) ? 0 : OPENER_NOT_REGULAR;
}

int opening_stat(int fd, struct opener_file *ret)
{
	return file_stat(fd, AT_STATX_DONT_SYNC, ret);
}

/* Whether the file has no name and lives in memory, so that only descriptors and mappings lead to
 * it. */
static bool is_memory_file(int fd, const struct opener_file *f)
{
	struct statfs s;

	return f->links == 0 && fstatfs(fd, &s) == 0 &&
	       (s.f_type == TMPFS_MAGIC || s.f_type == HUGETLBFS_MAGIC);
}

static bool is_memfd(int fd)
{
	char link[40], to[16];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, to, sizeof(to));
	return n >= 7 && memcmp(to, "/memfd:", 7) == 0;
}

static bool is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

/* Whether these users wrote the file about their process. Root may have written it for them, but a
 * link to another file of root does not count. */
static bool is_by_users(const struct opener_file *f, const struct opener_request *q)
{
	bool own = f->uid == q->uids[0] || f->uid == q->uids[1];
	bool roots = f->uid == 0 && f->links == 1 && f->mode & S_IROTH;

	return (own || roots) && f->mtime_ns + WRITTEN_SLACK_NS >= q->since_ns;
}

/* --- foreign and pseudo file systems --- */

/* The file system of an open file. */
struct place {
	enum mounts_trust trust; /* MOUNTS_LOCAL, MOUNTS_FOREIGN or MOUNTS_PSEUDO */
	uint64_t dev;		 /* 0: unknown */
};

/* Without tables of mounts, all file systems are local. Takes some 30 us, so ask once for each open
 * file. */
static struct place place_of(const struct opening *o, int fd)
{
	struct place ret = { .trust = MOUNTS_LOCAL };

	if (o->mounts)
		ret.trust = mounts_of(o->mounts, fd, o->pid, &ret.dev);
	return ret;
}

static bool is_foreign(struct place at)
{
	return at.trust == MOUNTS_FOREIGN;
}

/* Whether a file system may be asked anything. If not, records which one it is. */
static bool may_ask(struct opening *o, struct place at)
{
	o->at_pseudo = at.trust == MOUNTS_PSEUDO;
	if (!is_foreign(at))
		return !o->at_pseudo;
	for (unsigned i = 0; i < o->grants; i++)
		if (o->granted[i] == at.dev)
			return true;
	o->at_foreign = true;
	o->foreign_dev = at.dev;
	return false;
}

/* The same for the file system of an open folder: for rooted_open. */
static bool may_look_up(void *ctx, int fd)
{
	return may_ask(ctx, place_of(ctx, fd));
}

/* Closes a descriptor, or leaves that to the caller if its file system is foreign, since it may
 * hang. */
static void close_later(struct opening *o, int fd, struct place at)
{
	if (is_foreign(at) && o->laters < OPENING_LATER)
		o->later[o->laters++] = fd;
	else
		close(fd);
}

/* --- a file --- */

static int give_copy(struct opening *o, int r, const struct sealed *s, struct opener_result *ret)
{
	if (r)
		return r;
	ret->fd = s->fd;
	o->probe = s->probe;
	o->copy_bytes = s->bytes;
	return 0;
}

/* Fills *ret with the descriptor to hand out for an open file: the file or a copy. Owns fd from
 * then on. */
static int give(struct opening *o, int fd, struct place at, const struct opener_request *q,
		struct opener_file *f, struct opener_result *ret)
{
	const bool memory = is_memory_file(fd, f);
	struct sealed s;
	int r = 0;

	f->foreign = is_foreign(at);
	f->memfd = memory && is_memfd(fd);
	f->copied = memory || f->foreign;
	if (memory && q->kind == OPENER_MAPPING && !is_elf(fd))
		r = OPENER_NO_PROGRAM;
	else if (!f->copied)
		ret->fd = fd;
	else if (f->size > OPENER_COPY_MAX)
		r = OPENER_TOO_LARGE;
	else if (o->may_copy)
		r = give_copy(o, sealed_copy(fd, f->size, o->copy_max, &s), &s, ret);
	if (ret->fd != fd)
		close_later(o, fd, at);
	ret->file = *f;
	return r;
}

/* Opens the file of an O_PATH descriptor (borrowed). Returns -EACCES if the kernel or the file
 * system refused, OPENER_REFUSED if our own rules did. */
static int open_checked(struct opening *o, int path_fd, struct place at,
			const struct opener_request *q, bool expect, struct opener_result *ret)
{
	struct opener_file f;
	char link[40];

	/* Nothing in a file system of the kernel's own is wanted. The reader of a foreign one could
	 * be made to wait. */
	if (at.trust == MOUNTS_PSEUDO || (q->by_users && is_foreign(at)))
		return OPENER_REFUSED;
	/* If no copy may be made, the file system is not asked anything. */
	if (o->may_copy && !may_ask(o, at))
		return OPENER_FOREIGN;
	/* Use only what the kernel already knows. */
	int r = file_stat(path_fd, AT_STATX_DONT_SYNC, &f);

	if (r)
		return r;
	if (expect && (f.dev != q->dev || f.inode != q->inode))
		return OPENER_OTHER;
	if (q->by_users && !is_by_users(&f, q))
		return OPENER_REFUSED;
	/* The file is identified by now. Opening it is not needed, and closing it may take
	 * long. */
	if (!o->may_copy && is_foreign(at)) {
		f.foreign = f.copied = true;
		ret->file = f;
		return f.size > OPENER_COPY_MAX ? OPENER_TOO_LARGE : 0;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	int fd = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = file_stat(fd, 0, &f);
	if (!r)
		return give(o, fd, at, q, &f, ret);
	close_later(o, fd, at);
	return r;
}

/* Converts the result of a lookup below a root. */
static int verdict_of(const struct opening *o, int r)
{
	if (r != -ETIMEDOUT)
		return r;
	return o->at_pseudo ? OPENER_REFUSED : o->at_foreign ? OPENER_FOREIGN : OPENER_TIMEOUT;
}

static int open_below(struct opening *o, int root, const char *path, const struct opener_request *q,
		      bool expect, struct opener_result *ret)
{
	int fd = rooted_open(root, path, !q->by_users, may_look_up, o);

	if (fd < 0)
		return verdict_of(o, fd);
	int r = open_checked(o, fd, place_of(o, fd), q, expect, ret);
	close(fd);
	return r;
}

/* Opens the root of a process, or ours for pid 0. */
static int open_root(const struct opening *o, uint32_t pid)
{
	char path[32];
	int fd;

	if (pid) {
		snprintf(path, sizeof(path), "%u/root", pid);
		fd = openat(o->proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	} else {
		fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

/* Opens by name, if that still leads to the mapped inode. A process that lived for milliseconds is
 * already gone with its root; its parent's root is probably the same, or ours is. */
static int open_by_name(struct opening *o, const struct opener_request *q,
			struct opener_result *ret)
{
	const uint32_t pids[] = { q->pid, q->parent_pid, 0 };
	int result = -ENOENT;

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
		if (i < 2 && !pids[i])
			continue;
		int root = open_root(o, pids[i]);
		if (root < 0)
			continue;
		int r = open_below(o, root, q->path.data, q, true, ret);
		close(root);
		if (r != -ENOENT && r != -ENOTDIR && r != OPENER_OTHER)
			return r;
		result = r;
	}
	return result;
}

/* Copies what the process has mapped of a file that nobody else may open. This may wait for the
 * process's pages, as for a foreign file system. dev: that file system, or 0: a local one. */
static int open_mapped(struct opening *o, const struct opener_request *q, uint64_t dev,
		       struct opener_result *ret)
{
	struct sealed s = { .fd = -1 };
	bool granted = !o->mounts;
	int r;

	if (!q->inode || q->by_users)
		return -EACCES;
	for (unsigned i = 0; i < o->grants; i++)
		granted |= o->granted[i] == dev;
	if (!granted && o->may_copy) {
		o->foreign_dev = dev;
		return OPENER_FOREIGN;
	}
	if (o->may_copy)
		r = give_copy(
			o,
			sealed_copy_of_mapped(o->proc, q->pid, q->dev, q->inode, o->copy_max, &s),
			&s, ret);
	else
		r = sealed_find_mapped(o->proc, q->pid, q->dev, q->inode);
	/* The identity contains the mapping, so that no other mapping shares it. */
	ret->file = (struct opener_file){
		.dev = q->dev,
		.inode = q->inode,
		.ctime_ns = (uint64_t)q->pid << 32 | (q->start >> 12 & UINT32_MAX),
		.size = o->may_copy ? s.size : 0,
		.uid = UINT32_MAX,
		.links = 1,
		.copied = true,
		.partial = true,
		.foreign = true,
	};
	return r;
}

/* Whether the file is certainly not the one in the record. On overlayfs the numbers of fstat and of
 * records may differ. */
static bool is_another(int fd, const struct opener_request *q)
{
	struct opener_file f;
	struct statfs s;

	return q->inode && opening_stat(fd, &f) == 0 && f.dev == q->dev && f.inode != q->inode &&
	       fstatfs(fd, &s) == 0 && (uint32_t)s.f_type != OVERLAYFS_SUPER_MAGIC;
}

static int open_mapping(struct opening *o, const struct opener_request *q,
			struct opener_result *ret)
{
	char path[80];

	snprintf(path, sizeof(path), "%u/map_files/%llx-%llx", q->pid, (unsigned long long)q->start,
		 (unsigned long long)q->end);
	int fd = openat(o->proc, path, O_PATH | O_CLOEXEC);
	int error = fd < 0 ? -errno : OPENER_OTHER;
	struct place at = { .trust = MOUNTS_LOCAL };

	if (fd >= 0)
		at = place_of(o, fd);
	if (is_foreign(at) && (q->by_users || (o->may_copy && !may_ask(o, at)))) {
		close(fd);
		return q->by_users ? OPENER_REFUSED : OPENER_FOREIGN;
	}
	if (fd >= 0 && (is_foreign(at) || !is_another(fd, q))) {
		int r = open_checked(o, fd, at, q, false, ret);

		close(fd);
		return r == -EACCES ? open_mapped(o, q, is_foreign(at) ? at.dev : 0, ret) : r;
	}
	if (fd >= 0)
		close(fd);
	/* The mapping is gone, or may not be followed. */
	if (opener_lacks_descriptors(error) || !q->path.len || q->path.data[0] != '/' || !q->inode)
		return error;
	return open_by_name(o, q, ret);
}

/* --- debug files --- */

/* Gives the n-th place where a debug file may be; an empty path: there is none. Returns false if
 * there are no more. */
static bool debug_path(const struct opener_request *q, unsigned n, char *to, size_t size)
{
	if (q->kind == OPENER_BUILD_ID || (q->kind == OPENER_ALT && n == 0)) {
		size_t at = (size_t)snprintf(to, size, "/usr/lib/debug/.build-id/%02x/",
					     q->build_id.data[0]);

		if (n)
			return false;
		for (size_t i = 1; i < q->build_id.len; i++)
			at += (size_t)snprintf(to + at, size - at, "%02x", q->build_id.data[i]);
		snprintf(to + at, size - at, ".debug");
		return true;
	}
	if (q->kind == OPENER_ALT && n == 1) {
		const char *dwz = memmem(q->name.data, q->name.len, ".dwz/", 5);

		to[0] = 0;
		if (q->name.data[0] == '/')
			snprintf(to, size, "%s", q->name.data);
		else if (dwz && !strstr(dwz, ".."))
			snprintf(to, size, "/usr/lib/debug/%s", dwz);
		return true;
	}
	if (q->kind == OPENER_ALT) {
		if (q->name.data[0] == '/')
			return false;
		n -= 2;
	}
	const char *slash = memrchr(q->path.data, '/', q->path.len);
	int folder = slash ? (int)(slash - q->path.data) : 0;
	struct str own = { .data = slash ? slash + 1 : q->path.data,
			   .len = q->path.len - (uint32_t)(slash ? folder + 1 : 0) };
	static const char *const before[] = { "", "", "/usr/lib/debug" }, *const after[] = {
		"", "/.debug", ""
	};

	if (n >= 3)
		return false;
	int len = snprintf(to, size, "%s%.*s%s/%s", before[n], folder, q->path.data, after[n],
			   q->name.data);
	/* A file is not its own debug file: skip the first place. */
	if (len < 0 || (size_t)len >= size || (n == 0 && str_eq(own, q->name)))
		to[0] = 0;
	return true;
}

/* Whether a file may be given as a debug file. The requester names it, so it must only get an ELF
 * file that all users on the host may read, and no other file beside a program. The root of the
 * search may belong to any user who maps the program. */
static bool is_debug_file(const struct opener_file *f, const struct opener_request *q)
{
	return f->mode & S_IROTH && (f->uid == 0 || f->uid == q->owner) &&
	       (!f->foreign || f->dev == q->dev);
}

static int open_debug_below(struct opening *o, int root, const char *path,
			    const struct opener_request *q, struct opener_result *ret)
{
	int r = open_below(o, root, path, q, false, ret);

	if (r || (is_debug_file(&ret->file, q) && (ret->fd < 0 || is_elf(ret->fd))))
		return r;
	if (ret->fd >= 0)
		close(ret->fd);
	if (o->probe >= 0)
		close(o->probe);
	o->probe = -1;
	o->copy_bytes = 0;
	*ret = (struct opener_result){ .fd = -1 };
	return OPENER_REFUSED;
}

/* Whether to try another place, which may have what this one lacks. */
static bool goes_on(int r)
{
	return r && r != OPENER_FOREIGN && r != OPENER_NO_ROOM && !opener_lacks_descriptors(r);
}

static int open_debug(struct opening *o, const struct opener_request *q, struct opener_result *ret)
{
	char path[OPENER_PATH_MAX + 300];
	int root = open_root(o, q->pid), result = -ENOENT, r = -ENOENT;

	if (root < 0)
		return root;
	/* Use only the rights that any user has: a folder on the way may be closed to others. */
	if (o->set_rights)
		o->set_rights(OPENING_FILES_OF_ALL);
	for (unsigned n = q->place; goes_on(r) && debug_path(q, n, path, sizeof(path)); n++) {
		r = path[0] ? open_debug_below(o, root, path, q, ret) : -ENOENT;
		if (r != -ENOENT && r != -ENOTDIR)
			result = r;
		if (!r)
			ret->place = n;
	}
	if (o->set_rights)
		o->set_rights(OPENING_ALL_RIGHTS);
	close(root);
	return result;
}

/* --- all kinds of requests --- */

static int open_folder(struct opening *o, const struct opener_request *q, struct opener_result *ret)
{
	int root = open_root(o, q->pid);
	struct statx x;

	if (root < 0)
		return root;
	int fd = rooted_open(root, q->path.data, true, may_look_up, o);

	close(root);
	if (fd < 0)
		return verdict_of(o, fd);
	/* Refuse these folders, since their files would be refused. */
	if (place_of(o, fd).trust != MOUNTS_LOCAL) {
		close(fd);
		return OPENER_REFUSED;
	}
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x) < 0 ||
	    !S_ISDIR(x.stx_mode)) {
		close(fd);
		return -ENOTDIR;
	}
	ret->fd = fd;
	return 0;
}

static int open_path(struct opening *o, const struct opener_request *q, struct opener_result *ret)
{
	int root = open_root(o, q->pid);

	if (root < 0)
		return root;
	int r = open_below(o, root, q->path.data, q, false, ret);
	close(root);
	return r;
}

static int open_by_kind(struct opening *o, const struct opener_request *q,
			struct opener_result *ret)
{
	switch (q->kind) {
	case OPENER_MAPPING:
		return open_mapping(o, q, ret);
	case OPENER_PATH:
		return q->expect_inode ? open_by_name(o, q, ret) : open_path(o, q, ret);
	case OPENER_FOLDER:
		return open_folder(o, q, ret);
	case OPENER_IN_FOLDER:
		return open_below(o, q->folder, q->path.data, q, false, ret);
	case OPENER_BUILD_ID:
	case OPENER_ALT:
	case OPENER_DEBUGLINK:
		return open_debug(o, q, ret);
	}
	return -EINVAL;
}

void opening_run(struct opening *o, const struct opener_request *q, struct opener_result *ret)
{
	*ret = (struct opener_result){ .fd = -1 };
	o->probe = -1;
	o->copy_bytes = 0;
	o->laters = 0;
	o->pid = q->pid;
	o->at_foreign = o->at_pseudo = false;
	ret->status = open_by_kind(o, q, ret);
	if (ret->status == OPENER_FOREIGN)
		ret->file = (struct opener_file){ .dev = o->foreign_dev };
}

/* --- checks of requests --- */

static bool text_is_fit(struct str s, size_t max)
{
	return s.len < max && (!s.len || !memchr(s.data, 0, s.len));
}

int opening_check(const struct opener_request *q)
{
	if (!text_is_fit(q->path, OPENER_PATH_MAX) || !text_is_fit(q->name, 256) ||
	    q->pid > INT32_MAX || q->parent_pid > INT32_MAX)
		return -EINVAL;
	if (q->kind == OPENER_MAPPING && !q->pid)
		return -EINVAL;
	if (q->kind == OPENER_ALT && (!q->name.len || !q->path.len || q->path.data[0] != '/'))
		return -EINVAL;
	if ((q->kind == OPENER_BUILD_ID || q->kind == OPENER_ALT) &&
	    (q->build_id.len < 2 || q->build_id.len > 64))
		return -EINVAL;
	if (q->kind == OPENER_DEBUGLINK &&
	    (!q->name.len || memchr(q->name.data, '/', q->name.len) || !q->path.len ||
	     q->path.data[0] != '/' || str_eq(q->name, STR_LIT("..")) ||
	     str_eq(q->name, STR_LIT("."))))
		return -EINVAL;
	if ((q->kind == OPENER_PATH || q->kind == OPENER_FOLDER) &&
	    (!q->path.len || q->path.data[0] != '/'))
		return -EINVAL;
	if (q->kind == OPENER_IN_FOLDER && (!q->path.len || memchr(q->path.data, '/', q->path.len)))
		return -EINVAL;
	return 0;
}
