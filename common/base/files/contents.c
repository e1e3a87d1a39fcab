/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files/contents.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/files/fd.h"

#define TRIES 3 /* attempts to read a file that changes meanwhile */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int read_once(int fd, size_t max, uint8_t **ret, size_t *ret_len, struct stat *ret_stat)
{
	struct stat before, after;

	if (fstat(fd, &before))
		return -errno;
	if (!S_ISREG(before.st_mode))
		return CONTENTS_NO_FILE;
	if ((uint64_t)before.st_size > max)
		return -EFBIG;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	const size_t len = (size_t)before.st_size;
	uint8_t *data = malloc(len + 1);

	if (!data)
		return -ENOMEM;
	const ssize_t n = fd_read_all(fd, data, len);
	int r = n < 0 ? (int)n : (size_t)n < len ? -EAGAIN : 0;

	if (!r && fstat(fd, &after))
		r = -errno;
	if (!r && !is_same(&before, &after))
		r = -EAGAIN;
	if (r) {
		/* The contents may be secret. */
		explicit_bzero(data, len);
		free(data);
		return r;
	}
	data[len] = '\0';
	*ret = data;
	*ret_len = len;
	*ret_stat = before;
	return 0;
}

int contents_read(int fd, size_t max, uint8_t **ret, size_t *ret_len, struct stat *ret_stat)
{
	int r = -EAGAIN;

	for (int i = 0; i < TRIES && r == -EAGAIN; i++)
		r = read_once(fd, max, ret, ret_len, ret_stat);
	return r;
}
