/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that our processes have in common once they are set up (seccomp.h): what libc does
 * with memory, time, signals and threads; sockets that are connected; the start of a thread. Each
 * process has these, as it needs them, and a list of its own on top.
 *
 * Where a call has conditions here, a list on top that wants more of it names the rest: two rules
 * for one call do not overlap.
 */
#ifndef PROFPIPE_BASELINE_H
#define PROFPIPE_BASELINE_H

#include "common/cell/seccomp.h"

/* Memory that cannot be run, and is no file's; clocks; signals that come; threads that are there;
 * writing, closing and asking about what is open. */
extern const struct seccomp_rule baseline_calls[];
/* Reading and writing open files, and waiting for them. */
extern const struct seccomp_rule baseline_files[];
/* Talking over a connected socket: to nobody else, and by no odd part of the kernel's sockets. */
extern const struct seccomp_rule baseline_sockets[];
/* A thread like those that are there: no process, no namespace. */
extern const struct seccomp_rule baseline_threads[];

#endif
