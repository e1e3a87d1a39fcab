/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process writes of the code that it generates: its perf map, /tmp/perf-PID.map in its own
 * root and by the pid that it has in its innermost pid namespace; and its jitdump, of which it maps
 * a page executable so that others hear of it.
 *
 * Both are opened by the opener and only on request, and given only if they are regular files of
 * the process's user (or of root's alone), not on FUSE, a map only if it was written to since the
 * process began (that of an earlier process of the same pid is none of its), and if the same
 * process is there before and after. A process without a map that runs the program of its parent
 * is a fork, and its parent's map is given.
 *
 * Where a process has no map yet, its /tmp is kept (an O_PATH descriptor, which pins its mount) for
 * JITFILES_KEEP_NS after it was last asked for: some runtimes write their map when they exit, and
 * then there is no way to it through /proc any more.
 */
#ifndef PROFPIPE_JITFILES_H
#define PROFPIPE_JITFILES_H

#include "tools/prof-bpf/host/host.h"

#define JITFILES_KEEP 64
#define JITFILES_KEEP_NS 15000000000ull

struct jitfiles;

/* h and its opener: borrowed. -ENOMEM. */
int jitfiles_new(struct host *h, struct opener *o, struct jitfiles **ret);
/* After opener_free. */
void jitfiles_free(struct jitfiles *j);
/* process: an id of the host's, which pid has or had. kind: enum jit_kind of common/wire/msg.h.
 * done is called from opener_run. 0; or -errno, and done is not called: -ESRCH (it is gone, or has
 * become another), -ENOENT (it has no jitdump mapped). */
int jitfiles_open(struct jitfiles *j, uint32_t process, uint32_t pid, uint64_t kind,
		  opener_done *done, void *ctx);
/* Lets go of folders that nobody asked for in a while. */
void jitfiles_tick(struct jitfiles *j, uint64_t now_ns);

#endif
