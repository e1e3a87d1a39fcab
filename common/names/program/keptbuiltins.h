/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8's builtins of programs that were closed to free memory. Finding them takes some 50 ms of cpu
 * time, and they have 30 KiB. So the next time the same file is opened, they are taken from here.
 *
 * A file is the same if its inode and its times are. No user can set the time of a file's last
 * change (ctime), so no file can pass for another one.
 */
#ifndef COMMON_NAMES_PROGRAM_KEPTBUILTINS_H
#define COMMON_NAMES_PROGRAM_KEPTBUILTINS_H

#include <stdint.h>
#include <sys/stat.h>

#define KEPTBUILTINS_MAX 4 /* files, of those that were closed last */

struct v8_builtins;

/* Takes ownership. builtins may be NULL; st is the file's. */
void keptbuiltins_give(const struct stat *st, struct v8_builtins *builtins);
/* Returns the builtins of the same file, which the caller then owns; NULL: there are none. */
struct v8_builtins *keptbuiltins_take(const struct stat *st);

#endif
