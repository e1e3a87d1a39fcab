/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/files/watched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/files/contents.h"
#include "common/base/system/clock.h"

static bool is_same(const struct watched *w, const struct stat *st)
{
	return w->data && w->dev == st->st_dev && w->inode == st->st_ino &&
	       w->size == (uint64_t)st->st_size && w->mtime_ns == clock_timespec_ns(st->st_mtim) &&
	       w->ctime_ns == clock_timespec_ns(st->st_ctim);
}

static void note(struct watched *w, const struct stat *st)
{
	w->dev = st->st_dev;
	w->inode = st->st_ino;
	w->size = (uint64_t)st->st_size;
	w->mtime_ns = clock_timespec_ns(st->st_mtim);
	w->ctime_ns = clock_timespec_ns(st->st_ctim);
}

static void forget(uint8_t *data, size_t len)
{
	if (data)
		explicit_bzero(data, len);
	free(data);
}

static void take(struct watched *w, uint8_t *data, size_t len)
{
	forget(w->data, w->len);
	w->data = data;
	w->len = len;
}

/* Reads the file again. */
static int read_again(struct watched *w, int fd)
{
	struct stat st;
	uint8_t *data;
	size_t len;

	if (fstat(fd, &st))
		return -errno;
	if (is_same(w, &st))
		return 0;
	const int r = contents_read(fd, w->max, &data, &len, &st);

	if (r)
		return r;
	w->verdict = w->check ? w->check((struct span){ .data = data, .len = len }) : 0;
	if (w->verdict) {
		forget(data, len);
		return WATCHED_REFUSED;
	}
	take(w, data, len);
	note(w, &st);
	return WATCHED_CHANGED;
}

int watched_refresh(struct watched *w)
{
	int fd, r = w->lender ? lender_borrow(w->lender, w->number, &fd) : 0;

	if (r || !w->lender)
		return r;
	r = read_again(w, fd);
	close(fd);
	return r;
}

void watched_done(struct watched *w)
{
	take(w, NULL, 0);
}
