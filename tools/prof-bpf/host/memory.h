/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whose memory prof-symd may have to name interpreted frames; reader.h reads it.
 *
 * The process must meet all of these:
 *
 * - it maps the file of a runtime (runtimes.def)
 * - a sample within the last minute had interpreted frames of it
 * - it is not one of profpipe's, not set-id, and dumpable (/proc/PID belongs to its own user)
 * - the name of its executable is not on the deny list
 * - it stays within a rate of its own
 *
 * prof-bpf passes the bytes on without looking at them.
 */
#ifndef PROF_BPF_HOST_MEMORY_H
#define PROF_BPF_HOST_MEMORY_H

#include "common/wire/msg.h"
#include "tools/prof-bpf/host/host.h"

#define MEMORY_PIECES 256
#define MEMORY_BYTES 131072u	 /* per request */
#define MEMORY_RATE (4u << 20)	 /* bytes per second of one process */
#define MEMORY_BURST (16u << 20) /* bytes at once */
#define MEMORY_SAMPLED_NS 60000000000ull

/* The process whose memory is read, to check afterwards that it is still the same. */
struct memory_read {
	uint32_t process, pid, uid;
	uint64_t exe_dev, exe_inode;
};

/* Whether a request may read this memory. 0; -ESRCH: the process is gone or another one by now;
 * -EACCES: refused; -EAGAIN: above the rate; -EINVAL. */
int memory_begin(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
		 struct memory_read *ret);
/* Whether the bytes may be handed out: meanwhile the pid may belong to another process, or run
 * another program. 0, -ESRCH, -EACCES. */
int memory_end(struct host *h, const struct memory_read *m);

/* Whether the kernel program's copies of a dumpable process's objects may be passed on. */
bool memory_may_take(const struct host_process *p);

#endif
