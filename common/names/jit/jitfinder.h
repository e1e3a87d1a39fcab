/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds perf maps and jitdumps by path, with the rights of the caller. Tools that are run by hand
 * use it; in a deployment prof-bpf does the same for prof-symd. The rules are the same:
 *
 *  - the path is taken below the process's root, with its innermost pid
 *  - a regular file, not a symbolic link
 *  - it belongs to the process's user or to root
 *  - it was written to after the process began
 */
#ifndef COMMON_NAMES_JIT_JITFINDER_H
#define COMMON_NAMES_JIT_JITFINDER_H

#include "common/wire/msg.h"

/* Returns a descriptor that the caller owns, or -errno. same_boot: the stream was recorded since
 * this host booted. Then the perf map of a process that has ended is looked for in our own /tmp. */
int jitfinder_open(enum jit_kind kind, const struct msg_process *process, bool same_boot);
/* Finds the path of a jitdump, NUL-terminated, in a line of /proc/PID/maps. False: none. */
bool jitfinder_dump_path(char *line, char **ret_path);

#endif
