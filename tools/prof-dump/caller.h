/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half with the caller's rights: it opens files, traces, and hands over descriptors. It takes
 * no data from the other half. lend.h lends the files that the other half asks for.
 */
#ifndef PROF_DUMP_CALLER_H
#define PROF_DUMP_CALLER_H

#include "tools/prof-dump/process/live.h"

/* How long the other half may walk while threads are stopped. */
#define CALLER_PATIENCE_MS 2000

/* Dumps a process opened by live_open, with process `walker` as the other half. Returns 0; enum
 * live_verdict; -EPIPE: the other half ended early; -ETIMEDOUT: it took too long; -errno. All
 * stopped threads continue: before this returns, or later through live_late. */
int caller_process(int socket, pid_t walker, struct live *l, bool all);
struct procfs_mapping;

/* Opens the file of a mapping of pid. Returns a descriptor or -errno. */
int caller_open(pid_t pid, const struct procfs_mapping *m);

#endif
