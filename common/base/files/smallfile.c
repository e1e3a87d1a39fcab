/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files/smallfile.h"

#include <errno.h>
#include <fcntl.h>
#include "common/base/files/fd.h"

ssize_t smallfile_read(int dir, const char *path, char *to, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	const ssize_t n = fd < 0 ? -errno : fd_read_all(fd, to, size - 1);

	fd_close(&fd);
	to[n > 0 ? n : 0] = '\0';
	return n;
}
