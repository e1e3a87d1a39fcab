/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about files that prof-symd's workers cannot read, in whole or in part. path: of the
 * file, untrusted bytes. */
#ifndef PROF_SYMD_FILES_WORKER_WARNINGS_H
#define PROF_SYMD_FILES_WORKER_WARNINGS_H

#include "common/base/bytes/str.h"

/* libdw's worker was killed while it read the file, which is tried once more. */
void worker_warnings_killed(struct str path);
/* The file was given up: libdw's worker crashed on it, or was killed `kills` times. */
void worker_warnings_lost(struct str path, unsigned kills);
/* The file has no names: the worker that reads it crashed again and again, or was killed. */
void worker_warnings_died(struct str path, bool killed);
/* The file's DWARF needs more memory than there is: in a deployment, and by hand. */
void worker_warnings_too_large(struct str path);
void worker_warnings_too_large_by_hand(struct str path);
/* The perf map or jitdump of a process is lost: the worker that reads it died over it. The first
 * few are logged, and all are counted at the end. */
void worker_warnings_code_lost(uint32_t pid);
void worker_warnings_codes_lost(uint64_t files);
/* Warns if the keeper of libdw's workers is gone. For runs by hand, in which nobody restarts
 * prof-symd. */
void worker_warnings_keeper_gone(void);

#endif
