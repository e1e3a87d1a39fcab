/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a regular file that others may change at any time: bounded, and as they were at
 * one moment, as far as the file's times show.
 */
#ifndef COMMON_BASE_CONTENTS_H
#define COMMON_BASE_CONTENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum contents_verdict { CONTENTS_NO_FILE = 32 /* no regular file; beside verdicts of callers */ };

/* Reads the whole file, from its beginning on. The caller frees *ret, behind which stands a NUL.
 * *ret_stat: of what was read. 0, CONTENTS_NO_FILE; -EFBIG: more than max bytes; -EAGAIN: it
 * changes all the time; -ENOMEM; -errno of reading. */
int contents_read(int fd, size_t max, uint8_t **ret, size_t *ret_len, struct stat *ret_stat);

#endif
