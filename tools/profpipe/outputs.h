/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what the user named, as the user: SUDO_UID where it is set, so that root writes nothing that they could not. */
#ifndef PROFPIPE_OUTPUTS_H
#define PROFPIPE_OUTPUTS_H

/* Opens path for writing, "-" as standard output; never through a symbolic link in its last place. A regular file keeps what it holds until output_begin. The descriptor is
 * O_CLOEXEC and the caller's. -errno; -ELOOP: a symbolic link; -ENOTSUP: neither a file, a pipe nor a character device. */
int output_open(const char *path, int *ret_fd);
/* Empties a regular file: the run has begun, and something will come. -errno. */
int output_begin(int fd);
/* Opens path for reading, as the user. -errno. */
int input_open(const char *path, int *ret_fd);

#endif
