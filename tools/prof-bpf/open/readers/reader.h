/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader reads memory of processes, and files that the opener opened, in workers
 * (workerpool.h). A read of memory may hang forever (userfaultfd, pages of FUSE and NFS); the
 * worker is then given up. While it hangs, its process is not read again; if two hang, no process
 * of their owner.
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
	/* A file, owned once reader_submit returned 0; -1: memory. */
	int fd;
	uint32_t pid;	     /* of the memory; 0 for a file */
	struct owner *payer; /* whom this is charged to; NULL: nobody */
	uint32_t pieces;
	const uint64_t *addresses, *lengths; /* copied; lengths are above 0 */
};

struct reader_result {
	int status;		 /* 0; -ETIMEDOUT, -EBUSY: it hangs; -errno: nothing was read */
	struct buf bytes;	 /* of all pieces, in order; the callback may take it */
	uint32_t pieces;	 /* as requested */
	const uint64_t *lengths; /* how much of each could be read, from its beginning */
	/* Of memory: the mode of the process's program, and whether it was the same one before and
	 * after. */
	uint32_t exe_mode;
	bool exe_same;
};
typedef void reader_done(void *ctx, struct reader_result *r);

struct workerpool;

/* A later workerpool_run calls done, once. 0; -ENOBUFS: its owner waits for too much; -EINVAL,
 * -ENOMEM. */
int reader_submit(struct workerpool *pool, const struct reader_request *q, reader_done *done,
		  void *ctx);

#endif
