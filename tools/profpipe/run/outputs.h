/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening what the user named, as the user: SUDO_UID where it is set, with that user's groups, so
 * that root reads and writes nothing that they could not.
 *
 * A regular file that is there already, and holds something, keeps that until the new one is whole:
 * what is written goes into a file beside it, without a name where the file system can, which takes
 * its place at the end. Where that cannot be (its folder may not be written to, it has other names,
 * something is mounted on it, its owner cannot be had again) it is written in place, and cut to
 * that at the end. A file that was made for a run which never began is removed again.
 */
#ifndef PROFPIPE_OUTPUTS_H
#define PROFPIPE_OUTPUTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct output {
	int fd;		       /* O_CLOEXEC; -1: none */
	const char *path;      /* borrowed */
	bool regular, created; /* opened by its path, not handed to us open */
	bool replaces;	       /* fd is of the file that is to take its place */
	dev_t dev;	       /* of what the path names */
	ino_t ino;
	int folder;		   /* of it; -1 */
	char name[NAME_MAX + 1];   /* in that folder */
	char beside[NAME_MAX + 1]; /* the new file's; "": it has none yet */
};
#define OUTPUT_NONE ((struct output){ .fd = -1, .folder = -1 })

/* Opens path for writing, never through a symbolic link in its last place. `-`, /dev/stdout,
 * /dev/stderr and /dev/fd/N are descriptors that the caller handed us. A pipe without a reader is
 * waited for. -errno; -ELOOP: a symbolic link; -ENOTSUP: neither a file, a pipe nor a character
 * device. */
int output_open(struct output *o, const char *path);
bool output_same(const struct output *a, const struct output *b);
/* No more is written. whole: what an old file held goes; else it stays, where it could be kept
 * (replaces). Closes. -errno: the old file stays, too. */
int output_end(struct output *o, bool whole);
/* Nothing was written: a file that was made for it goes. Closes. */
void output_drop(struct output *o);
/* One line for a person on why output_open or input_open failed. Static storage. */
const char *output_error(int r);
/* Opens path for reading, as the user; `-` is standard input. -errno; -EISDIR for a folder. */
int input_open(const char *path, int *ret_fd);

#endif
