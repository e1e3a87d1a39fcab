/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/queue/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"

#define ENTRIES_FIRST 64

static bool may_own(const struct spool_owners *o, uid_t uid)
{
	return uid == 0 || uid == geteuid() || uid == o->user ||
	       (o->last && uid >= o->first && uid <= o->last);
}

int spool_open(struct spool *s, const char *path, const struct spool_owners *owners, bool lock)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		r = -errno;
	else if (!may_own(owners, st.st_uid) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		r = SPOOL_OPEN_TO_OTHERS;
	else if (lock && flock(fd, LOCK_EX | LOCK_NB))
		r = errno == EWOULDBLOCK ? SPOOL_IN_USE : -errno;
	if (r)
		fd_close(&fd);
	s->folder = fd;
	return r;
}

void spool_close(struct spool *s)
{
	fd_close(&s->folder);
}

DIR *spool_names(const struct spool *s)
{
	int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

/* Whether the folder, or one of those above it, is the system's. */
static bool is_of_system(const struct stat *folder, const char *path)
{
	static const char *const places[] = {
		"/",	     "/home",	   "/lib32",	"/media",	"/mnt",	      "/opt",
		"/root",     "/run",	   "/srv",	"/tmp",		"/var",	      "/var/cache",
		"/var/lib",  "/var/local", "/var/log",	"/var/opt",	"/var/spool", "/var/tmp",
		"/run/lock", "/var/crash", "/var/mail", "/var/backups",
	};
	static const char *const trees[] = { "/bin",  "/boot", "/dev", "/etc", "/lib",
					     "/proc", "/sbin", "/sys", "/usr" };
	char real[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!stat(places[i], &st) && st.st_dev == folder->st_dev &&
		    st.st_ino == folder->st_ino)
			return true;
	if (!realpath(path, real))
		return false;
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		const size_t n = strlen(trees[i]);

		if (strncmp(real, trees[i], n) == 0 && (real[n] == '/' || !real[n]))
			return true;
	}
	return false;
}

int spool_may_take(const struct spool *s, const char *path, const struct spool_owners *owners)
{
	struct stat st;
	uint64_t key, serial;
	bool part;
	int r = 0;

	if (fstat(s->folder, &st))
		return -errno;
	if (is_of_system(&st, path))
		return SPOOL_SYSTEM;
	if (owners->last && st.st_uid >= owners->first && st.st_uid <= owners->last)
		return 0;
	DIR *d = spool_names(s);

	if (!d)
		return -errno;
	for (struct dirent *e = readdir(d); e && !r; e = readdir(d))
		/* A new file system has a lost+found. */
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    strcmp(e->d_name, "lost+found") != 0 &&
		    !spoolfile_parse_name(e->d_name, &key, &serial, &part))
			r = SPOOL_FOREIGN;
	closedir(d);
	return r;
}

int spool_hand_over(const struct spool *s, uid_t uid, gid_t gid)
{
	DIR *d = spool_names(s);
	uint64_t key, serial;
	bool part;
	int r = 0;

	if (!d)
		return -errno;
	for (struct dirent *e = readdir(d); e && !r; e = readdir(d)) {
		struct stat st;

		if (!spoolfile_parse_name(e->d_name, &key, &serial, &part))
			continue;
		int fd = openat(s->folder, e->d_name,
				O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		/* Changing the owner of a link would give away the linked file, so only regular
		 * files qualify. */
		if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
		    fchown(fd, uid, gid))
			r = -errno;
		fd_close(&fd);
	}
	closedir(d);
	if (!r && fchown(s->folder, uid, gid))
		r = -errno;
	return r;
}

static int read_whole(int fd, void *to, size_t n)
{
	const ssize_t got = fd_read_all(fd, to, n);

	return got < 0 ? (int)got : (size_t)got < n ? SPOOL_DAMAGED : 0;
}

/* Opens a file and reads its header, which must agree with its name. Returns 0 and *ret_fd,
 * SPOOL_DAMAGED or -errno. */
static int open_file(const struct spool *s, uint64_t key, uint64_t serial, struct spoolfile *ret,
		     int *ret_fd)
{
	char name[SPOOLFILE_NAME];
	uint8_t head[SPOOLFILE_HEAD];
	struct stat st;

	spoolfile_name(key, serial, name);
	int fd = openat(s->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	/* A symbolic link or a socket. */
	if (fd < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENXIO ? SPOOL_DAMAGED : -errno;
	int r = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : SPOOL_DAMAGED;

	if (!r)
		r = read_whole(fd, head, sizeof(head));
	if (!r && (!spoolfile_parse((struct span){ .data = head, .len = sizeof(head) }, ret) ||
		   ret->key != key || ret->serial != serial ||
		   st.st_size != (off_t)(SPOOLFILE_HEAD + ret->len)))
		r = SPOOL_DAMAGED;
	if (r)
		fd_close(&fd);
	*ret_fd = fd;
	return r;
}

static int add_entry(struct spool_found *f, size_t *cap, const struct spoolfile *file)
{
	if (f->n == *cap) {
		const size_t more = *cap ? 2 * *cap : ENTRIES_FIRST;
		struct spool_entry *e = reallocarray(f->entries, more, sizeof(*e));

		if (!e)
			return -ENOMEM;
		f->entries = e;
		*cap = more;
	}
	f->entries[f->n++] = (struct spool_entry){ .serial = file->serial,
						   .facts = file->facts,
						   .len = file->len };
	return 0;
}

static int by_serial(const void *a, const void *b)
{
	const struct spool_entry *x = a, *y = b;

	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static int find_one(const struct spool *s, uint64_t key, const char *name, struct spool_found *ret,
		    size_t *cap)
{
	uint64_t file_key, serial;
	struct spoolfile file;
	bool part;
	int fd;

	if (!spoolfile_parse_name(name, &file_key, &serial, &part)) {
		ret->foreign++;
		return 0;
	}
	if (file_key != key)
		return 0;
	ret->last = numbers_larger(ret->last, serial);
	if (part) {
		ret->damaged++;
		unlinkat(s->folder, name, 0);
		return 0;
	}
	int r = open_file(s, key, serial, &file, &fd);

	if (!r) {
		close(fd);
		r = add_entry(ret, cap, &file);
	} else if (r == SPOOL_DAMAGED) {
		ret->damaged++;
		spool_remove(s, key, serial);
		r = 0;
	} else if (r == -EACCES || r == -EPERM) {
		ret->unreadable++;
		r = 0;
	}
	return r;
}

int spool_find(const struct spool *s, uint64_t key, struct spool_found *ret)
{
	DIR *d = spool_names(s);
	size_t cap = 0;
	int r = 0;

	*ret = (struct spool_found){ .entries = NULL };
	if (!d)
		return -errno;
	for (struct dirent *e = readdir(d); e && !r; e = readdir(d))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = find_one(s, key, e->d_name, ret, &cap);
	closedir(d);
	if (r) {
		free(ret->entries);
		*ret = (struct spool_found){ .entries = NULL };
	} else if (ret->n) {
		qsort(ret->entries, ret->n, sizeof(ret->entries[0]), by_serial);
	}
	return r;
}

int spool_write(const struct spool *s, uint64_t key, uint64_t serial, const struct request *r)
{
	const struct span bytes = request_bytes(r);
	const struct spoolfile f = { .key = key,
				     .serial = serial,
				     .facts = r->facts,
				     .len = (uint32_t)bytes.len,
				     .crc = spoolfile_crc(bytes) };
	char name[SPOOLFILE_NAME], part[SPOOLFILE_NAME + sizeof(SPOOLFILE_PART)];
	uint8_t head[SPOOLFILE_HEAD];

	spoolfile_name(key, serial, name);
	snprintf(part, sizeof(part), "%s" SPOOLFILE_PART, name);
	spoolfile_encode(&f, head);
	int fd = openat(s->folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);

	if (fd < 0)
		return -errno;
	int e = fd_write_all(fd, head, sizeof(head));

	if (!e)
		e = fd_write_all(fd, bytes.data, bytes.len);
	if (!e && fsync(fd))
		e = -errno;
	fd_close(&fd);
	if (!e && renameat(s->folder, part, s->folder, name))
		e = -errno;
	if (e)
		unlinkat(s->folder, part, 0);
	else
		/* If the name is lost, the request is still sent from memory. */
		(void)fsync(s->folder);
	return e;
}

int spool_read(const struct spool *s, uint64_t key, uint64_t serial, struct request **ret)
{
	struct spoolfile f;
	int fd;
	int e = open_file(s, key, serial, &f, &fd);

	if (e)
		return e;
	uint8_t *bytes = malloc(f.len ? f.len : 1);

	e = bytes ? read_whole(fd, bytes, f.len) : -ENOMEM;
	close(fd);
	const struct span got = { .data = bytes, .len = f.len };

	if (!e && spoolfile_crc(got) != f.crc)
		e = SPOOL_DAMAGED;
	if (!e) {
		*ret = request_new(&f.facts, got);
		e = *ret ? 0 : -ENOMEM;
	}
	free(bytes);
	return e;
}

void spool_remove(const struct spool *s, uint64_t key, uint64_t serial)
{
	char name[SPOOLFILE_NAME];

	spoolfile_name(key, serial, name);
	unlinkat(s->folder, name, 0);
}

const char *spool_error(int r)
{
	switch (r) {
	case SPOOL_OPEN_TO_OTHERS:
		return "others may write to it; give it to the user of prof-send, with mode 700";
	case SPOOL_SYSTEM:
		return "is a folder of the system; make a folder for the spool alone, with mode "
		       "700";
	case SPOOL_FOREIGN:
		return "holds files that are not prof-send's; name an empty folder, which profpipe "
		       "gives to the user of prof-send";
	case SPOOL_IN_USE:
		return "another prof-send uses it; name another folder";
	case -ENOENT:
		return "does not exist; make it, with mode 700";
	case -ENOTDIR:
		return "is not a folder; name a folder";
	default: {
		static char text[160];

		snprintf(text, sizeof(text), "%s; name a folder that prof-send may write to",
			 strerror(r < 0 ? -r : EIO));
		return text;
	}
	}
}
