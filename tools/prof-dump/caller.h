/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half that has the caller's rights: it opens, traces, and hands over. Of what the other half
 * says it takes nothing but which file to open, and that only where it is an ELF file.
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
/* Hands the core over, and then files by their paths below sysroot ("": the caller's own), until
 * the other half is done. 0 or -errno. */
int caller_core(int socket, int core, const char *sysroot);

#endif
