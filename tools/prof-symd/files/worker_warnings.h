/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about files that prof-symd's workers cannot read, in whole or in part. path: that of the
 * file, untrusted bytes. */
#ifndef PROF_SYMD_FILES_WORKER_WARNINGS_H
#define PROF_SYMD_FILES_WORKER_WARNINGS_H

#include "common/base/bytes/str.h"

/* libdw's worker was killed while it read the file; the file is tried once more. */
void worker_warnings_killed(struct str path);
/* The file was given up: libdw's worker crashed on it, or was killed `kills` times. */
void worker_warnings_lost(struct str path, unsigned kills);
/* The file has no names: the worker that reads it crashed repeatedly, or was killed. */
void worker_warnings_died(struct str path, bool killed);
/* The file's DWARF needs more memory than there is: in a deployment, and by hand. */
void worker_warnings_too_large(struct str path);
void worker_warnings_too_large_by_hand(struct str path);
/* The perf map or jitdump of a process is lost: the worker that read it died. The first few files
 * are logged, and worker_warnings_codes_lost logs the total at the end. */
void worker_warnings_code_lost(uint32_t pid);
void worker_warnings_codes_lost(uint64_t files);
/* Warns if the keeper of libdw's workers is gone. Used by hand, where prof-symd is not
 * restarted. */
void worker_warnings_keeper_gone(void);

#endif
