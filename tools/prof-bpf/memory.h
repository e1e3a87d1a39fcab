/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of processes for prof-symd, which names interpreted frames from it.
 *
 * Read only from processes that map the file of a runtime, that are not ours, not set-id, that may
 * be dumped (/proc/PID belongs to the process's own user), whose executable's name is not on the
 * deny list, and within a rate for each. What is read is passed on, never looked at.
 *
 * Which file is a runtime's, prof-symd says: one that was taken over can say so of any, and then
 * read every process that is not refused.
 */
#ifndef PROFPIPE_MEMORY_H
#define PROFPIPE_MEMORY_H

#include "common/buf.h"
#include "common/msg.h"
#include "tools/prof-bpf/host.h"

#define MEMORY_PIECES 256
#define MEMORY_BYTES 131072u	 /* in one request */
#define MEMORY_RATE (4u << 20)	 /* bytes a second of one process */
#define MEMORY_BURST (16u << 20) /* and at once */

/* Reads what a request asks for. lengths: how much of each piece was there. 0; -ESRCH: gone, or
 * another process by now; -EACCES: refused; -EAGAIN: beyond the rate; -EINVAL, -ENOMEM. */
int memory_read(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
		struct buf *ret_bytes, uint64_t ret_lengths[static MEMORY_PIECES]);

#endif
