/* SPDX-License-Identifier: Apache-2.0 */
/* A small text file, such as most of /proc and /sys, whose beginning suffices. */
#ifndef COMMON_BASE_FILES_SMALLFILE_H
#define COMMON_BASE_FILES_SMALLFILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads at most size - 1 bytes of the file and adds a NUL. dir: the folder of a relative path, or
 * AT_FDCWD. Returns the number of bytes, or -errno with an empty text. */
ssize_t smallfile_read(int dir, const char *path, char *to, size_t size);

#endif
