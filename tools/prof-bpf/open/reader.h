/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader reads memory of processes, and files that they chose, in a thread. A read may hang for
 * ever (userfaultfd, pages of FUSE and NFS); the thread is then left behind.
 *
 * One thread reads at a time. If it misses the deadline, its request is answered with an error, and
 * another thread takes over. Until the thread returns, its process is not read again, and after a
 * second such hang, no process of its user. So a user who makes reads hang loses only names, and
 * costs few threads.
 */
#ifndef PROF_BPF_OPEN_READER_H
#define PROF_BPF_OPEN_READER_H

#include <stdint.h>
#include "common/base/buf.h"

#define READER_PIECES 256
#define READER_DEADLINE_NS 250000000ull /* per request */
#define READER_HANGING 8		/* threads that may hang at once */
#define READER_HANGING_OF_USER 2
#define READER_QUEUE_MAX 128

struct reader_request {
	/* A file, owned once reader_submit returned 0; -1: memory. */
	int fd;
	uint32_t pid; /* of the memory; 0 for a file */
	uint32_t uid; /* user to blame if it hangs */
	uint32_t pieces;
	const uint64_t *addresses, *lengths; /* copied; lengths are above 0 */
};

struct reader_result {
	int status;		 /* 0; -ETIMEDOUT; -errno: nothing was read */
	struct buf bytes;	 /* of all pieces, in order; the callback may take it */
	uint32_t pieces;	 /* as requested */
	const uint64_t *lengths; /* how much of each could be read, from its beginning */
};
typedef void reader_done(void *ctx, struct reader_result *r);

struct reader;

/* -errno, -ENOMEM. The caller owns *ret. */
int reader_new(struct reader **ret);
/* Leaves hanging threads behind. Calls no callback any more. Takes NULL. */
void reader_free(struct reader *r);
/* Readable (level) while reader_run has something to do. Borrowed. */
int reader_fd(const struct reader *r);
/* A later reader_run calls done, once. 0; -EACCES: the process, or others of its user, hang us now;
 * -EAGAIN: all threads hang, or the queue is full; -EINVAL, -ENOMEM. */
int reader_submit(struct reader *r, const struct reader_request *q, reader_done *done, void *ctx);
/* Calls back for finished requests, and gives up on those past their deadline. now_ns:
 * CLOCK_MONOTONIC. Call it when reader_fd is readable, and a few times a second. */
void reader_run(struct reader *r, uint64_t now_ns);
/* For tests: how many threads hang now. */
unsigned reader_hanging(struct reader *r);

#endif
