/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files by path, as the caller may open them: what a tool run by hand does for itself, and prof-bpf
 * does for it in the deployment. Nothing is waited for (a FIFO or a device is refused), and only
 * regular files are given.
 */
#ifndef PROFPIPE_FINDER_H
#define PROFPIPE_FINDER_H

#include "common/wire/msg.h"
#include "common/names/program/program.h"

/* An open descriptor, given, or -errno (-EINVAL: not a regular file). */
int finder_open(const char *path);
/* The file of a stream: by its path when it is that very file (device, inode, ctime, size), else
 * when it has the build id that the stream gives; the vDSO from our own process when `same_kernel`.
 * A descriptor or -errno. */
int finder_open_stream(const struct msg_file *file, bool same_kernel);
/* Looks for what a program wants, below /usr/lib/debug and beside `path`, the program's own, and
 * offers it until it wants nothing. */
void finder_complete(struct program *p, const char *path);
/* One want: a descriptor or -1. */
int finder_debug(enum program_want want, struct span build_id, const char *name, const char *path);

#endif
