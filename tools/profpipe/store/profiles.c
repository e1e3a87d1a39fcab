/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/store/profiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "common/base/bytes/str.h"
#include "common/base/files/fd.h"

#define STAMP "dddddddddTddddddZ" /* one d more than usual, for the year 10000 */
#define LISTED_MAX 65536u
#define PART ".part"
#define JOURNAL ".journal"
#define FRESH_S 600
#define TAKEN_UP_MAX '8' /* how often a journal may be continued; the last byte of its name */

struct listed {
	char name[96];
	uint64_t bytes;
	bool stays; /* it is being written */
};

static bool is_ours(const char *name)
{
	const char *form = STAMP + 1;

	for (; *form; form++, name++)
		if (*form == 'd' ? *name < '0' || *name > '9' : *name != *form)
			return false;
	return *name == '.';
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

/* Lists at most LISTED_MAX files of the folder: enough to remove some of them. */
static int list(int dir, struct listed **ret, size_t *ret_len)
{
	const int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = own < 0 ? NULL : fdopendir(own);
	size_t len = 0, cap = 0;
	struct listed *all = NULL;
	struct stat st;

	if (!d) {
		const int r = -errno;

		if (own >= 0)
			close(own);
		return r;
	}
	for (struct dirent *e = readdir(d); e && len < LISTED_MAX; e = readdir(d)) {
		if (!is_ours(e->d_name) || strlen(e->d_name) >= sizeof(all->name) ||
		    fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (len == cap) {
			cap = cap ? 2 * cap : 256;
			struct listed *more = realloc(all, cap * sizeof(*more));

			if (!more) {
				free(all);
				closedir(d);
				return -ENOMEM;
			}
			all = more;
		}
		strcpy(all[len].name, e->d_name);
		all[len++].bytes = st.st_size > 0 ? (uint64_t)st.st_size : 0;
	}
	closedir(d);
	if (len)
		qsort(all, len, sizeof(*all), by_name);
	*ret = all;
	*ret_len = len;
	return 0;
}

/* Whether an earlier run made the file, and no other user can have a hard link to it. */
static bool is_own(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1;
}

/* Opens and locks a file of an ended run; -1 if that fails. */
static int take_up(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && (!is_own(fd) || flock(fd, LOCK_EX | LOCK_NB))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Whether a process is writing this part or journal. */
static bool is_held(int dir, const char *name)
{
	if (!str_ends(str_from(name), PART) && !strstr(name, JOURNAL))
		return false;
	const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	const bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return held;
}

/* Removes the oldest files until at most p->max files are left, and max_bytes together with the
 * files that are being written. Those are not removed, and their journals' sizes do not count. They
 * also do not count as files: while one file follows another, there are two of them, which would
 * leave no room for complete ones. */
static int prune(struct profiles *p)
{
	struct listed *all = NULL;
	size_t len = 0, left = 0;
	uint64_t bytes = 0;
	int r = list(p->dir, &all, &len);

	if (r)
		return r;
	for (size_t i = 0; i < len; i++) {
		const char *name = all[i].name;

		all[i].stays = !strcmp(name, p->name) || !strcmp(name, p->part) ||
			       !strcmp(name, p->journal_name) || is_held(p->dir, name);
		if (all[i].stays && strstr(name, JOURNAL))
			continue;
		left += !all[i].stays || !str_ends(str_from(name), PART);
		bytes += all[i].bytes;
	}
	for (size_t i = 0; i < len && (left > p->max || bytes > p->max_bytes); i++) {
		if (all[i].stays)
			continue;
		if (unlinkat(p->dir, all[i].name, 0) && errno != ENOENT) {
			r = -errno;
			break;
		}
		left--;
		bytes -= all[i].bytes;
	}
	free(all);
	return r;
}

/* Removes empty parts and journals that nobody locks: their runs were killed before they wrote
 * anything. */
static void remove_stale(int dir)
{
	struct listed *all = NULL;
	size_t len = 0;

	if (list(dir, &all, &len))
		return;
	for (size_t i = 0; i < len; i++) {
		if (all[i].bytes || (!str_ends(str_from(all[i].name), PART) &&
				     !str_ends(str_from(all[i].name), JOURNAL)))
			continue;
		const int fd = take_up(dir, all[i].name, O_RDONLY);

		if (fd < 0)
			continue;
		unlinkat(dir, all[i].name, 0);
		close(fd);
	}
	free(all);
}

/* Whether the name is that of a journal: the stamp, `ending`, JOURNAL, and a digit that counts how
 * often a run has continued it. */
static bool is_journal(const char *name, const char *ending, size_t *ret_stem, char *ret_next)
{
	const size_t stem = strlen(STAMP) - 1 + strlen(ending), n = stem + strlen(JOURNAL);
	const char *number = name + n;

	if (strlen(name) < n || strncmp(name + strlen(STAMP) - 1, ending, strlen(ending)) != 0 ||
	    strncmp(name + stem, JOURNAL, strlen(JOURNAL)) != 0 ||
	    (*number && (number[1] || *number < '1' || *number >= TAKEN_UP_MAX)))
		return false;
	*ret_stem = stem;
	*ret_next = *number ? (char)(*number + 1) : '1';
	return true;
}

/* Whether the last write was recent and since this boot. With a longer gap, or samples of two
 * boots, the profile would not cover one continuous period. */
static bool is_fresh(int fd, int64_t now_s)
{
	struct timespec up;
	struct stat st;

	if (fstat(fd, &st) || clock_gettime(CLOCK_BOOTTIME, &up))
		return false;
	return now_s - st.st_mtime < (up.tv_sec < FRESH_S ? up.tv_sec : FRESH_S);
}

/* Continues the newest journal of a killed run, under the same name. */
static void resume(struct profiles *p, const char *ending, int64_t now_s)
{
	struct listed *all = NULL;
	size_t len = 0, stem;
	char next;

	if (list(p->dir, &all, &len))
		return;
	for (size_t i = len; i-- && p->journal < 0;) {
		if (!all[i].bytes || !is_journal(all[i].name, ending, &stem, &next))
			continue;
		p->journal = take_up(p->dir, all[i].name, O_RDWR);
		if (p->journal >= 0 && !is_fresh(p->journal, now_s)) {
			close(p->journal);
			p->journal = -1;
		}
		if (p->journal < 0)
			continue;
		snprintf(p->name, sizeof(p->name), "%.*s", (int)stem, all[i].name);
		snprintf(p->part, sizeof(p->part), "%.*s" PART, (int)stem, all[i].name);
		snprintf(p->journal_name, sizeof(p->journal_name), "%.*s" JOURNAL "%c", (int)stem,
			 all[i].name, next);
		p->resumed = !renameat(p->dir, all[i].name, p->dir, p->journal_name);
		if (!p->resumed) {
			close(p->journal);
			p->journal = -1;
		}
	}
	free(all);
}

static void close_all(struct profiles *p)
{
	if (p->fd >= 0)
		close(p->fd);
	if (p->dir >= 0)
		close(p->dir);
	if (p->journal >= 0)
		close(p->journal);
	p->fd = p->dir = p->journal = -1;
}

int profiles_open(const char *path, int *ret_error)
{
	struct stat link, st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (fd < 0 || fstat(fd, &st))
		r = -errno;
	else if (!lstat(path, &link) && S_ISLNK(link.st_mode) && link.st_uid != 0 &&
		 link.st_uid != geteuid())
		r = PROFILES_LINK;
	else if (st.st_mode & S_IWOTH)
		r = PROFILES_OPEN;
	if (r)
		fd_close(&fd);
	*ret_error = r;
	return fd;
}

int profiles_begin(struct profiles *p, const char *path, const char *ending, int64_t now_s,
		   bool resumes)
{
	const time_t now = (time_t)now_s;
	char stamp[sizeof(STAMP)];
	struct tm tm;

	if (!gmtime_r(&now, &tm) || !strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm))
		return -EOVERFLOW;
	snprintf(p->name, sizeof(p->name), "%s%.32s", stamp, ending);
	snprintf(p->part, sizeof(p->part), "%s%.32s" PART, stamp, ending);
	snprintf(p->journal_name, sizeof(p->journal_name), "%s%.32s" JOURNAL, stamp, ending);
	int r = 0;

	p->dir = profiles_open(path, &r);
	if (p->dir < 0)
		return r;
	remove_stale(p->dir);
	p->resumed = false;
	if (resumes)
		resume(p, ending, now_s);
	r = prune(p);
	if (!r && !faccessat(p->dir, p->name, F_OK, AT_SYMLINK_NOFOLLOW))
		r = -EEXIST;
	if (!r) {
		p->fd = openat(p->dir, p->part,
			       O_WRONLY | O_CREAT | (p->resumed ? 0 : O_EXCL) | O_NOFOLLOW |
				       O_NONBLOCK | O_CLOEXEC,
			       0640);
		r = p->fd < 0 ? -errno : is_own(p->fd) ? 0 : -EPERM;
	}
	if (!r && !p->resumed)
		p->journal = openat(p->dir, p->journal_name,
				    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* The lock lasts until the last process that has the file open closes it. */
	if (!r)
		(void)flock(p->fd, LOCK_EX | LOCK_NB);
	if (!r && p->journal >= 0)
		(void)flock(p->journal, LOCK_EX | LOCK_NB);
	if (r)
		close_all(p);
	return r;
}

const char *profiles_error(int r)
{
	static char text[160];

	switch (r) {
	case PROFILES_OPEN:
		return "every user may write to it; run chmod o-w, or name another folder";
	case PROFILES_LINK:
		return "is a link of another user; name the folder itself";
	default:
		snprintf(text, sizeof(text), "%s; name a folder that you can write to",
			 strerror(r < 0 ? -r : EIO));
		return text;
	}
}

int profiles_end(struct profiles *p, enum profiles_end how)
{
	const bool whole = how == PROFILES_WHOLE;
	struct stat st;
	int r = 0;

	if (whole && fsync(p->fd))
		r = -errno;
	if (!r && whole && renameat(p->dir, p->part, p->dir, p->name))
		r = -errno;
	if (!r && whole)
		(void)fsync(p->dir);
	if (!whole && !fstat(p->fd, &st) && !st.st_size && unlinkat(p->dir, p->part, 0))
		r = -errno;
	/* Also removes an empty journal, which a later run could not continue. */
	if (p->journal >= 0 && (how != PROFILES_KILLED || fstat(p->journal, &st) || !st.st_size) &&
	    unlinkat(p->dir, p->journal_name, 0) && errno != ENOENT)
		r = r ? r : -errno;
	const int pruned = prune(p);

	close_all(p);
	return r ? r : pruned;
}
