/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in which a process describes the code that it generates: its perf map and its jitdump.
 * The perf map is /tmp/perf-PID.map in its own root, named by the pid in its innermost pid
 * namespace. The process maps a page of the jitdump executable, so that profilers notice the file.
 *
 * The opener opens both, only on request, with these checks:
 *
 * - It is a regular file of the process's user, or of root with a single name and readable by all.
 * - It is not on FUSE.
 * - A map was written after the process began. Otherwise it belongs to an earlier process with the
 *   same pid.
 * - The same process exists before and after.
 *
 * A process without a map that runs its parent's program is a fork: it gets its parent's map.
 *
 * If a process has no map yet, its /tmp is kept open for JITFILES_KEEP_NS after the last request
 * (an O_PATH descriptor, which pins the mount). Some runtimes write their map when they exit, and
 * then /proc no longer leads there.
 */
#ifndef PROF_BPF_HOST_LOOKUPS_JITFILES_H
#define PROF_BPF_HOST_LOOKUPS_JITFILES_H

#include "tools/prof-bpf/open/opener.h"

#define JITFILES_KEEP 64
#define JITFILES_KEEP_NS 15000000000ull

struct host;
struct jitfiles;

/* h and its opener are borrowed. Returns 0 or -ENOMEM. */
int jitfiles_new(struct host *h, struct opener *o, struct jitfiles **ret);
/* Call it after opener_free. */
void jitfiles_free(struct jitfiles *j);
/* Opens a file. process: the host's id of the process that has, or had, this pid. kind: enum
 * msg_jit_kind of common/wire/msg.h. workerpool_run calls done. Returns 0; or -errno, in which case
 * done is not called: -ESRCH (gone, or another process by now), -ENOENT (no jitdump mapped), -EBUSY
 * (its owner must wait; statuses.h). */
int jitfiles_open(struct jitfiles *j, uint32_t process, uint32_t pid, uint64_t kind,
		  opener_done *done, void *ctx);
/* Closes folders that were not needed for a while. */
void jitfiles_tick(struct jitfiles *j, uint64_t now_ns);

#endif
