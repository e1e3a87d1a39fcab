/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baseline: system calls (seccomp.h) that several of our processes need after their setup. Each
 * process combines the lists that it needs, and adds a list of its own.
 *
 * Two rules for one call must not overlap. So if a rule here has conditions, a rule for that call
 * in another list may only match what these conditions exclude.
 */
#ifndef COMMON_CELL_CONFINE_BASELINE_H
#define COMMON_CELL_CONFINE_BASELINE_H

#include "common/cell/confine/seccomp.h"

/* Memory that is neither executable nor mapped from a file; clocks; signals; existing threads;
 * writing, closing and querying open files. */
extern const struct seccomp_rule baseline_calls[];
/* Reading and writing open files, and waiting for them. */
extern const struct seccomp_rule baseline_files[];
/* Communicating over a connected socket: with no other address, and without rarely used
 * features. */
extern const struct seccomp_rule baseline_sockets[];
/* Starting a thread, but no process and no namespace. */
extern const struct seccomp_rule baseline_threads[];

#endif
