/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening what the user named, as the user: SUDO_UID where it is set, with that user's groups, so
 * that root reads and writes nothing that they could not.
 *
 * A regular file that is there already keeps what it holds until something is written, and is cut
 * to what was written at the end; one that was made for a run which never began is removed again.
 */
#ifndef PROFPIPE_OUTPUTS_H
#define PROFPIPE_OUTPUTS_H

#include <stdbool.h>
#include <sys/types.h>

struct output {
	int fd;		       /* O_CLOEXEC; -1: none */
	const char *path;      /* borrowed */
	bool regular, created; /* opened by its path, not handed to us open */
	dev_t dev;
	ino_t ino;
};
#define OUTPUT_NONE ((struct output){ .fd = -1 })

/* Opens path for writing, never through a symbolic link in its last place. `-`, /dev/stdout,
 * /dev/stderr and /dev/fd/N are descriptors that the caller handed us. A pipe without a reader is
 * waited for. -errno; -ELOOP: a symbolic link; -ENOTSUP: neither a file, a pipe nor a character
 * device. */
int output_open(struct output *o, const char *path);
bool output_same(const struct output *a, const struct output *b);
/* All was written: what an old file held beyond it goes. Closes. -errno. */
int output_end(struct output *o);
/* Nothing was written: a file that was made for it goes. Closes. */
void output_drop(struct output *o);
/* One line for a person on why output_open or input_open failed. Static storage. */
const char *output_error(int r);
/* Opens path for reading, as the user; `-` is standard input. -errno; -EISDIR for a folder. */
int input_open(const char *path, int *ret_fd);

#endif
