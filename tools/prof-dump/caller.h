/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half that has the caller's rights: it opens, traces, and hands over. Of what the other half
 * says here it takes nothing; files that it asks for are lent by lend.h.
 */
#ifndef PROF_DUMP_CALLER_H
#define PROF_DUMP_CALLER_H

#include "tools/prof-dump/live.h"

/* How long the other half may walk while threads stand. */
#define CALLER_PATIENCE_MS 2000

/* Dumps a process that live_open has opened, with `walker` as the other half. 0; enum live_verdict;
 * -EPIPE: the other half ended before its time; -ETIMEDOUT: it took too long; -errno. Whatever was
 * stopped goes on, before this returns or, with those that live_late is for, after. */
int caller_process(int socket, pid_t walker, struct live *l, bool all);
struct procfs_mapping;

/* The file that pid maps so. A descriptor or -errno. */
int caller_open(pid_t pid, const struct procfs_mapping *m);

#endif
