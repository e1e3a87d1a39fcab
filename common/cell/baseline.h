/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baseline: system calls (seccomp.h) that several of our processes need after their setup. Each
 * process takes the lists it needs, and adds its own.
 *
 * Two rules for one call must not overlap. So if a rule here has conditions, a rule of another list
 * only names what lies outside them.
 */
#ifndef COMMON_CELL_BASELINE_H
#define COMMON_CELL_BASELINE_H

#include "common/cell/seccomp.h"

/* Memory that is neither executable nor of a file; clocks; signals; existing threads; writing,
 * closing and asking about open files. */
extern const struct seccomp_rule baseline_calls[];
/* Reading and writing open files, and waiting for them. */
extern const struct seccomp_rule baseline_files[];
/* Talking over a connected socket: to no other address, and without rare features. */
extern const struct seccomp_rule baseline_sockets[];
/* Starting a thread, but no process and no namespace. */
extern const struct seccomp_rule baseline_threads[];

#endif
