/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds perf maps and jitdumps by path, with the rights of the caller. Tools that are run by hand
 * use it; in a deployment prof-bpf does the same for prof-symd. The rules are the same:
 *
 *  - the path is resolved below the process's root, with its innermost pid
 *  - a regular file, not a symbolic link
 *  - it belongs to the process's user or to root
 *  - it was written after the process began
 */
#ifndef COMMON_NAMES_JIT_JITFINDER_H
#define COMMON_NAMES_JIT_JITFINDER_H

#include "common/wire/msg.h"

/* Opens a file. Returns a descriptor that the caller owns, or -errno. same_boot: the stream was
 * recorded since this host booted. Then the perf map of a process that has ended is searched in our
 * own /tmp. */
int jitfinder_open(enum msg_jit_kind kind, const struct msg_process *process, bool same_boot);
/* Finds the path of a jitdump in a line of /proc/PID/maps, and NUL-terminates it there. Returns
 * false if there is none. */
bool jitfinder_dump_path(char *line, char **ret_path);

#endif
