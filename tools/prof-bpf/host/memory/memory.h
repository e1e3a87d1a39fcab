/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which memory prof-symd may read to name interpreted frames; reader.h reads it.
 *
 * The process must meet all of these conditions:
 *
 * - it maps the file of a runtime (runtimes.def)
 * - a sample within the last minute had interpreted frames of it
 * - it is not one of profpipe's, not set-id, and dumpable (/proc/PID belongs to its own user)
 * - the name of its executable is not on the deny list
 * - it stays within its rate
 *
 * And the memory must be within reach of its frames (reach.h). In the bytes that it passes on,
 * prof-bpf only interprets pointers and sizes. The bytes of long pieces, such as tables of lines,
 * are limited for each process.
 */
#ifndef PROF_BPF_HOST_MEMORY_MEMORY_H
#define PROF_BPF_HOST_MEMORY_MEMORY_H

#include "bpf/sample.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/processes/host_types.h"

struct host;

#define MEMORY_PIECES 256
#define MEMORY_BYTES 131072u	 /* per request */
#define MEMORY_RATE (4u << 20)	 /* bytes per second for one process */
#define MEMORY_BURST (16u << 20) /* bytes at once */
#define MEMORY_LONG 512u	 /* bytes of a piece; the bytes after these count as long, */
#define MEMORY_LONG_RATE 65536u	 /* and have their own rate */
#define MEMORY_LONG_BURST (1u << 20)
/* Against these rates, what a key in a request costs, and what all keys of a request do. */
#define MEMORY_KEY 4096u
#define MEMORY_KEYS 65536u
#define MEMORY_PLACES (4u << 20) /* bytes for the addresses within reach, of all processes */
#define MEMORY_SAMPLED_NS 60000000000ull

/* The process whose memory is read. It is checked afterwards that it is still the same. */
struct memory_read {
	uint32_t process, pid;
	struct owner *payer;	/* borrowed; who is charged for the read */
	uint32_t asked, pieces; /* pieces requested, and those of them within reach */
	/* Of the pieces within reach; places: their indices in the request. */
	uint64_t addresses[MEMORY_PIECES], lengths[MEMORY_PIECES];
	uint8_t places[MEMORY_PIECES];
	/* The objects that the kernel's program shall copy again. */
	uint64_t keys[MEMORY_PIECES];
	uint32_t key_count;
};

/* Finds the pieces that a request may read, and leaves out those that are out of reach. An address
 * that is a key (RUNTIME_KEYS) requests another copy of its object; only if this returns 0 or
 * -EFAULT may it be made. Returns 0;
 * -ESRCH: the process is gone or another one by now; -EACCES: refused; -EAGAIN: above the rate;
 * -EFAULT: nothing is within reach; -EINVAL. */
int memory_begin(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
		 struct memory_read *ret);
/* Whether the bytes may be passed on: meanwhile the pid may belong to another process, or run
 * another program. exe_mode: mode of the program that ran before and after the read; 0: not the
 * same one, or unknown. Returns 0 if so, -ESRCH or -EACCES. */
int memory_end(struct host *h, const struct memory_read *m, uint32_t exe_mode);
/* Takes memory that was read for one piece of a request. Memory that it points to is then within
 * reach. Returns how many of the bytes may be passed on. */
size_t memory_was_read(struct host *h, const struct memory_read *m, uint32_t piece,
		       struct span bytes);
/* Brings the objects of a sample within reach. */
void memory_was_sampled(struct host *h, const struct host_process *p, const struct sample *s);

/* Whether the process may be dumped now, as far as is known, and is not on the deny list. */
bool memory_may_look(struct host *h, struct host_process *p);

/* Whether copies of objects that the kernel program made of a dumpable process may be passed on. */
bool memory_may_take(const struct host_process *p);

#endif
