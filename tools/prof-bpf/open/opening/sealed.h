/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed copies: memory files that no process can write to or resize. They replace files that are
 * not handed out themselves: those in memory, since a descriptor of a memfd can be reopened for
 * writing; and foreign ones (mounts.h), since their readers may be kept waiting. They also hold
 * files that only the processes that map them can read.
 *
 * A copy has memory only for pages with data. Pages of zeros are holes.
 */
#ifndef PROF_BPF_OPEN_OPENING_SEALED_H
#define PROF_BPF_OPEN_OPENING_SEALED_H

#include <stdint.h>

struct sealed {
	/* Both are read-only, O_CLOEXEC, and separate open files. fd is for the reader of the copy,
	 * and carries a shared lock (flock) until its last duplicate is closed in any process. So
	 * `probe` can tell whether that has happened. */
	int fd, probe;
	uint64_t bytes; /* memory that it takes */
	uint64_t size;
};

/* Copies the first `size` bytes of fd (borrowed), with at most `max` bytes of memory. Returns 0,
 * OPENER_TOO_LARGE (above OPENER_COPY_MAX), OPENER_NO_ROOM, -EIO (the file is shorter) or
 * -errno. */
int sealed_copy(int fd, uint64_t size, uint64_t max, struct sealed *ret);

/* Whether process pid has mapped a part of a file (device as in struct opener_file) that it cannot
 * write to. proc: an O_PATH descriptor of a mounted proc. Returns 0 if so, -EACCES (no) or
 * -errno. */
int sealed_find_mapped(int proc, uint32_t pid, uint64_t dev, uint64_t inode);
/* Copies these parts: headers, text and unwind data. Each page is at its offset. The size ends with
 * the last such page. Returns the errors of both functions above. */
int sealed_copy_of_mapped(int proc, uint32_t pid, uint64_t dev, uint64_t inode, uint64_t max,
			  struct sealed *ret);

#endif
