/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perf maps and jitdumps by path, as the caller may open them: what prof-bpf does for prof-symd in
 * the deployment, by the same rules. In the process's own root, by its innermost pid; no link at
 * the end; a regular file of the process's user or of root, written to since the process began.
 */
#ifndef PROFPIPE_JITFINDER_H
#define PROFPIPE_JITFINDER_H

#include "common/wire/msg.h"

/* An open descriptor, given, or -errno. same_boot: the stream was recorded since this host was
 * started: then the perf map of a process that is gone is looked for in our own /tmp. */
int jitfinder_open(enum jit_kind kind, const struct msg_process *process, bool same_boot);
/* Of the text of a process's maps: the path of its jitdump, NUL-terminated. False: none. */
bool jitfinder_dump_path(char *line, char **ret_path);

#endif
