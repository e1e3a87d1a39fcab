/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader reads memory of processes, and files that the opener opened, in workers
 * (workerpool.h). A read of memory may hang forever (userfaultfd, pages of FUSE and NFS); the
 * worker is then given up. While it hangs, its process is not read again. If two hang, no process
 * of their owner is read.
 */
#ifndef PROF_BPF_OPEN_READERS_READER_H
#define PROF_BPF_OPEN_READERS_READER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/bytes/buf.h"

#define READER_PIECES 256
#define READER_DEADLINE_NS 250000000ull /* per request */

struct owner;

struct reader_request {
	/* A file, owned by the reader once reader_submit returned 0; -1: read memory. */
	int fd;
	uint32_t pid;	     /* the process whose memory is read; 0 for a file */
	struct owner *payer; /* the owner charged for this; NULL: none */
	uint32_t pieces;
	const uint64_t *addresses, *lengths; /* copied; each length is above 0 */
};

struct reader_result {
	int status;		 /* 0; -ETIMEDOUT, -EBUSY: it hangs; -errno: nothing was read */
	struct buf bytes;	 /* bytes of all pieces, in order; the callback may take
				  * ownership */
	uint32_t pieces;	 /* number of pieces, as requested */
	const uint64_t *lengths; /* how many bytes of each piece could be read, from its
				  * beginning */
	/* For memory: the mode of the process's program, and whether it was the same program before
	 * and after. */
	uint32_t exe_mode;
	bool exe_same;
};
typedef void reader_done(void *ctx, struct reader_result *r);

struct workerpool;

/* Queues a request. A later workerpool_run calls done, once. Returns 0; -ENOBUFS: its owner has too
 * many open requests; -EINVAL; or -ENOMEM. */
int reader_submit(struct workerpool *pool, const struct reader_request *q, reader_done *done,
		  void *ctx);

#endif
