/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/profiles.h"

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

#define STAMP "dddddddddTddddddZ" /* one d too many, for the year 10000 */
#define LISTED_MAX 65536u

struct listed {
	char name[96];
	uint64_t bytes;
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

/* Of a folder with more than LISTED_MAX of them some are seen, which is enough to remove some. */
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

/* The oldest go until there are `max` files of max_bytes at most; the newest, which is the run's,
 * and is not larger, stays. */
static int prune(struct profiles *p, size_t max)
{
	struct listed *all = NULL;
	uint64_t bytes = 0;
	size_t len = 0;
	int r = list(p->dir, &all, &len);

	if (r)
		return r;
	for (size_t i = 0; i < len; i++)
		bytes += all[i].bytes;
	for (size_t i = 0, left = len; i < len && (left > max || bytes > p->max_bytes); i++) {
		if (!strcmp(all[i].name, p->name) || !strcmp(all[i].name, p->part))
			continue;
		if (unlinkat(p->dir, all[i].name, 0) && errno != ENOENT) {
			r = -errno;
			break;
		}
		p->removed++;
		left--;
		bytes -= all[i].bytes;
	}
	free(all);
	return r;
}

/* An empty part that nobody holds: who opened it was killed before anything was written. */
static void remove_stale(int dir)
{
	static const char ending[] = ".part";
	struct listed *all = NULL;
	size_t len = 0;

	if (list(dir, &all, &len))
		return;
	for (size_t i = 0; i < len; i++) {
		const size_t n = strlen(all[i].name);

		if (all[i].bytes || n < sizeof(ending) ||
		    strcmp(all[i].name + n - (sizeof(ending) - 1), ending))
			continue;
		const int fd = openat(dir, all[i].name,
				      O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

		if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
			unlinkat(dir, all[i].name, 0);
		if (fd >= 0)
			close(fd);
	}
	free(all);
}

static void close_all(struct profiles *p)
{
	if (p->fd >= 0)
		close(p->fd);
	if (p->dir >= 0)
		close(p->dir);
	p->fd = p->dir = -1;
}

int profiles_begin(struct profiles *p, const char *path, const char *ending, int64_t now_s)
{
	const time_t now = (time_t)now_s;
	char stamp[sizeof(STAMP)];
	struct tm tm;

	if (!gmtime_r(&now, &tm) || !strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm))
		return -EOVERFLOW;
	snprintf(p->name, sizeof(p->name), "%s%.32s", stamp, ending);
	snprintf(p->part, sizeof(p->part), "%s%.32s.part", stamp, ending);
	p->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir < 0)
		return -errno;
	remove_stale(p->dir);
	int r = prune(p, p->max ? p->max - 1 : 0);

	if (!r && !faccessat(p->dir, p->name, F_OK, AT_SYMLINK_NOFOLLOW))
		r = -EEXIST;
	if (!r) {
		p->fd = openat(p->dir, p->part,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
		r = p->fd < 0 ? -errno : 0;
	}
	/* Until the last who has it closes it. */
	if (!r)
		(void)flock(p->fd, LOCK_EX | LOCK_NB);
	if (r)
		close_all(p);
	return r;
}

int profiles_end(struct profiles *p, bool whole)
{
	struct stat st;
	int r = 0;

	if (whole && fsync(p->fd))
		r = -errno;
	if (!r && whole && renameat(p->dir, p->part, p->dir, p->name))
		r = -errno;
	if (!whole && !fstat(p->fd, &st) && !st.st_size && unlinkat(p->dir, p->part, 0))
		r = -errno;
	const int pruned = prune(p, p->max);

	close_all(p);
	return r ? r : pruned;
}
