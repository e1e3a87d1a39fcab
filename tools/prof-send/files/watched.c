/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/files/watched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 3 /* of a file that changes while it is read */

static uint64_t ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static bool is_same(const struct watched *w, const struct stat *st)
{
	return w->data && w->dev == st->st_dev && w->inode == st->st_ino &&
	       w->size == (uint64_t)st->st_size && w->mtime_ns == ns(&st->st_mtim) &&
	       w->ctime_ns == ns(&st->st_ctim);
}

static void note(struct watched *w, const struct stat *st)
{
	w->dev = st->st_dev;
	w->inode = st->st_ino;
	w->size = (uint64_t)st->st_size;
	w->mtime_ns = ns(&st->st_mtim);
	w->ctime_ns = ns(&st->st_ctim);
}

static void take(struct watched *w, uint8_t *data, size_t len)
{
	if (w->data)
		explicit_bzero(w->data, w->len);
	free(w->data);
	w->data = data;
	w->len = len;
}

static int read_all(int fd, uint8_t *to, size_t n)
{
	size_t done = 0;

	while (done < n) {
		const ssize_t k = pread(fd, to + done, n - done, (off_t)done);

		if (k < 0 && errno != EINTR)
			return -errno;
		if (k == 0)
			return -EAGAIN;
		done += k > 0 ? (size_t)k : 0;
	}
	return 0;
}

/* Reads what did not change meanwhile. */
static int read_once(struct watched *w, int fd)
{
	struct stat before, after;

	if (fstat(fd, &before))
		return -errno;
	if (is_same(w, &before))
		return 0;
	if ((uint64_t)before.st_size > w->max)
		return -EFBIG;
	const size_t len = (size_t)before.st_size;
	uint8_t *data = malloc(len + 1);
	int r = data ? read_all(fd, data, len) : -ENOMEM;

	if (!r && fstat(fd, &after))
		r = -errno;
	if (!r && (after.st_size != before.st_size || ns(&after.st_mtim) != ns(&before.st_mtim)))
		r = -EAGAIN;
	if (r) {
		free(data);
		return r;
	}
	data[len] = '\0';
	take(w, data, len);
	note(w, &before);
	return WATCHED_CHANGED;
}

int watched_refresh(struct watched *w)
{
	int fd, r = w->lender ? lender_borrow(w->lender, w->number, &fd) : 0;

	if (r || !w->lender)
		return r;
	r = -EAGAIN;
	for (int i = 0; i < TRIES && r == -EAGAIN; i++)
		r = read_once(w, fd);
	close(fd);
	return r;
}

void watched_done(struct watched *w)
{
	take(w, NULL, 0);
}
