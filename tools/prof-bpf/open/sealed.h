/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed copies: memory files that nobody can write to or change the size of, made of files that
 * are not handed out themselves (who has a descriptor of a memfd can open it again for writing), or
 * that only the processes that map them can read.
 */
#ifndef PROFPIPE_SEALED_H
#define PROFPIPE_SEALED_H

#include <stdint.h>

/* A copy of the first `size` bytes of fd (borrowed), read from where it stands. *ret_fd: only
 * reads, O_CLOEXEC, the caller's. 0, OPENER_TOO_LARGE (above OPENER_COPY_MAX), -EIO (it is
 * shorter), -errno. */
int sealed_copy(int fd, uint64_t size, int *ret_fd);

/* Of a file (device as in struct opener_file) what process pid has mapped and cannot write to:
 * headers, text and what unwinding needs, each page at its offset and zeros between. proc: an
 * O_PATH descriptor of a mounted proc. *ret_size: bytes up to the last such page. 0,
 * OPENER_TOO_LARGE, -EACCES (nothing of it is mapped), -errno. */
int sealed_copy_of_mapped(int proc, uint32_t pid, uint64_t dev, uint64_t inode, uint64_t *ret_size,
			  int *ret_fd);

#endif
