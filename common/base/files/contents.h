/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a regular file that other programs may change at any time. The size is limited.
 * The result is a consistent snapshot, as far as the file's times show.
 */
#ifndef COMMON_BASE_FILES_CONTENTS_H
#define COMMON_BASE_FILES_CONTENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum contents_verdict {
	CONTENTS_NO_FILE = 32 /* not a regular file; in addition to verdicts of callers */
};

/* Reads the whole file from its beginning. The caller frees *ret, which ends with a NUL. *ret_stat:
 * the state of the file that was read. Returns 0, CONTENTS_NO_FILE; -EFBIG: more than max bytes;
 * -EAGAIN: it changes all the time; -ENOMEM; -errno of reading. */
int contents_read(int fd, size_t max, uint8_t **ret, size_t *ret_len, struct stat *ret_stat);

#endif
