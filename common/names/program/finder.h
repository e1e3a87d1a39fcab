/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds program files and debug files by path, with the rights of the caller. Tools that are run by
 * hand use it; in a deployment prof-bpf opens files for them. Only regular files are opened, since
 * a FIFO or a device could block.
 */
#ifndef COMMON_NAMES_PROGRAM_FINDER_H
#define COMMON_NAMES_PROGRAM_FINDER_H

#include "common/names/program/program.h"
#include "common/wire/msg.h"

/* All functions that return a descriptor return one that the caller owns, or -errno. */

/* Opens a regular file. Returns -EINVAL for any other kind of file. */
int finder_open(const char *path);
/* Opens a file of a stream by its path. The file must have the identity recorded in the stream
 * (device, inode, ctime, size), or else its build id. If `same_kernel`, the vDSO is copied from
 * this process. */
int finder_open_stream(const struct msg_file *file, bool same_kernel);
/* Finds all files that a program wants, below /usr/lib/debug and beside the program's own path, and
 * offers them to the program. */
void finder_complete(struct program *p, const char *path);
/* Finds one wanted file. */
int finder_debug(enum program_want want, struct span build_id, const char *name, const char *path);

#endif
