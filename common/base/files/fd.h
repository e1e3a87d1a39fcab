/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor: -1 when empty. */
#ifndef COMMON_BASE_FILES_FD_H
#define COMMON_BASE_FILES_FD_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Closes the descriptor and sets it to -1. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* From *at on, or where the descriptor stands. */
static inline ssize_t fd_read_from(int fd, void *to, size_t n, const uint64_t *at)
{
	size_t done = 0;

	while (done < n) {
		char *rest = (char *)to + done;
		const ssize_t k = at ? pread(fd, rest, n - done, (off_t)(*at + done))
				     : read(fd, rest, n - done);

		if (k < 0 && errno != EINTR)
			return -errno;
		if (k == 0)
			break;
		done += k > 0 ? (size_t)k : 0;
	}
	return (ssize_t)done;
}

/* Reads n bytes, or fewer if the file ends before. Returns their number, or -errno. */
static inline ssize_t fd_read_all(int fd, void *to, size_t n)
{
	return fd_read_from(fd, to, n, NULL);
}

/* The same from an offset of the file; the position of the descriptor does not change. */
static inline ssize_t fd_pread_all(int fd, void *to, size_t n, uint64_t offset)
{
	return fd_read_from(fd, to, n, &offset);
}

/* Writes all n bytes. Returns 0 or -errno. */
static inline int fd_write_all(int fd, const void *from, size_t n)
{
	size_t done = 0;

	while (done < n) {
		const ssize_t k = write(fd, (const char *)from + done, n - done);

		if (k < 0 && errno != EINTR)
			return -errno;
		done += k > 0 ? (size_t)k : 0;
	}
	return 0;
}

#endif
