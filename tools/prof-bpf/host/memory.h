/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose memory prof-symd may have, which names interpreted frames from it; reader.h reads it.
 *
 * Only of processes that map the file of a runtime (runtimes.def) and had interpreted frames in a sample
 * within the last minute, that are not ours, not set-id, that may be dumped (/proc/PID belongs to
 * the process's own user), whose executable's name is not on the deny list, and within a rate for
 * each. What is read is passed on, never looked at.
 */
#ifndef PROFPIPE_MEMORY_H
#define PROFPIPE_MEMORY_H

#include "common/wire/msg.h"
#include "tools/prof-bpf/host/host.h"

#define MEMORY_PIECES 256
#define MEMORY_BYTES 131072u	 /* in one request */
#define MEMORY_RATE (4u << 20)	 /* bytes a second of one process */
#define MEMORY_BURST (16u << 20) /* and at once */
#define MEMORY_SAMPLED_NS 60000000000ull

/* Whose it is, to know it again by once it was read. */
struct memory_read {
	uint32_t process, pid, uid;
	uint64_t exe_dev, exe_inode;
};

/* Whether a request's memory may be read. 0; -ESRCH: gone, or another process by now; -EACCES:
 * refused; -EAGAIN: beyond the rate; -EINVAL. */
int memory_begin(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
		 struct memory_read *ret);
/* Whether what was read then may be handed out: its number may have become another's meanwhile, or
 * it may run another program. 0, -ESRCH, -EACCES. */
int memory_end(struct host *h, const struct memory_read *m);

/* Whether what the kernel's program took of a process, which may be dumped, is passed on. */
bool memory_may_take(const struct host_process *p);

#endif
