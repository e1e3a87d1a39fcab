/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that the user named. profpipe opens them as the user (SUDO_UID if set, with that user's
 * groups), so that root reads and writes nothing that the user could not.
 *
 * An existing regular file that is not empty keeps its contents until the new one is complete. The
 * new one lies beside it, without a name if the file system can do that, and replaces it at the
 * end. Sometimes that is impossible: its folder is not writable, it has other names, something is
 * mounted on it, or its owner cannot be restored. Then profpipe writes in place and truncates the
 * file at the end. A new file of a run that never began is removed again.
 */
#ifndef PROFPIPE_RUN_OUTPUTS_H
#define PROFPIPE_RUN_OUTPUTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct output {
	int fd;		       /* O_CLOEXEC; -1: none */
	const char *path;      /* borrowed */
	bool regular, created; /* opened by its path, not an open descriptor of the caller */
	bool replaces;	       /* fd is a new file, to take the place of the old one */
	dev_t dev;	       /* of the file at path */
	ino_t ino;
	int folder;		   /* of that file; -1 */
	char name[NAME_MAX + 1];   /* in that folder */
	char beside[NAME_MAX + 1]; /* the new file's name; "": it has none yet */
};
#define OUTPUT_NONE ((struct output){ .fd = -1, .folder = -1 })

/* Opens path for writing, but never through a symbolic link as its last part. `-`, /dev/stdout,
 * /dev/stderr and /dev/fd/N are descriptors of the caller. Waits for the reader of a pipe. -errno;
 * -ELOOP: a symbolic link; -ENOTSUP: neither a file, a pipe nor a character device. */
int output_open(struct output *o, const char *path);
bool output_same(const struct output *a, const struct output *b);
/* Ends writing and closes. whole: the new file replaces the old one; else the old one stays if
 * `replaces`. -errno: the old file stays too. */
int output_end(struct output *o, bool whole);
/* Nothing was written: removes a new file, and closes. */
void output_drop(struct output *o);
/* One line for the user on why output_open or input_open failed. Static storage. */
const char *output_error(int r);
/* Opens path for reading, as the user; `-` is standard input. -errno; -EISDIR for a folder. */
int input_open(const char *path, int *ret_fd);

#endif
