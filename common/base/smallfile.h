/* SPDX-License-Identifier: Apache-2.0 */
/* A small file of text, such as most of /proc and /sys, of which callers need the beginning. */
#ifndef COMMON_BASE_SMALLFILE_H
#define COMMON_BASE_SMALLFILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads at most size - 1 bytes of the file, and writes a NUL behind them. dir: the folder of a path
 * that is relative, or AT_FDCWD. Returns the number of bytes. -errno: nothing is read, and the text
 * is empty. */
ssize_t smallfile_read(int dir, const char *path, char *to, size_t size);

#endif
