/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed copies: memory files that nobody can write to or resize. They replace files that are not
 * handed out themselves, since a descriptor of a memfd can be reopened for writing. They also hold
 * files that only the processes that map them can read.
 */
#ifndef PROF_BPF_OPEN_SEALED_H
#define PROF_BPF_OPEN_SEALED_H

#include <stdint.h>

/* Copies `size` bytes of fd (borrowed), from its present offset. *ret_fd: read-only, O_CLOEXEC, the
 * caller's. 0, OPENER_TOO_LARGE (above OPENER_COPY_MAX), -EIO (the file is shorter), -errno. */
int sealed_copy(int fd, uint64_t size, int *ret_fd);

/* Copies the parts of a file (device as in struct opener_file) that process pid has mapped and
 * cannot write to: headers, text and unwind data. Each page is at its offset, with zeros between.
 * proc: an O_PATH descriptor of a mounted proc. *ret_size: bytes up to the end of the last such
 * page. 0, OPENER_TOO_LARGE, -EACCES (no part is mapped), -errno. */
int sealed_copy_of_mapped(int proc, uint32_t pid, uint64_t dev, uint64_t inode, uint64_t *ret_size,
			  int *ret_fd);

#endif
