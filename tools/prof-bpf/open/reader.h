/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disposable reader: reads memory of processes, and of files they chose, where a read may hang
 * for good (userfaultfd, pages of FUSE and NFS), in a thread that is then left behind.
 *
 * One thread reads at a time. One that does not come back within the deadline is answered for, and
 * another takes its place. Until it does come back its process is not read again, nor, after
 * another such, is any of its user's: who hangs us costs himself the names, and few threads.
 */
#ifndef PROFPIPE_READER_H
#define PROFPIPE_READER_H

#include <stdint.h>
#include "common/base/buf.h"

#define READER_PIECES 256
#define READER_DEADLINE_NS 250000000ull /* of one request */
#define READER_HANGING 8		/* threads that may hang at once */
#define READER_HANGING_OF_USER 2
#define READER_QUEUE_MAX 128

struct reader_request {
	int fd;	      /* a file's: owned from a reader_submit that returned 0 on; -1: memory */
	uint32_t pid; /* of the memory; of a file: 0 */
	uint32_t uid; /* who is to blame where it hangs */
	uint32_t pieces;
	const uint64_t *addresses, *lengths; /* copied; lengths are above 0 */
};

struct reader_result {
	int status;		 /* 0; -ETIMEDOUT; -errno: nothing was read */
	struct buf bytes;	 /* of all pieces, one behind the other; the callback may take it */
	uint32_t pieces;	 /* as asked for */
	const uint64_t *lengths; /* how much of each was there, from its beginning */
};
typedef void reader_done(void *ctx, struct reader_result *r);

struct reader;

/* -errno, -ENOMEM. The caller owns *ret. */
int reader_new(struct reader **ret);
/* Waits for no thread: what hangs is left behind. No callback is called any more. Takes NULL. */
void reader_free(struct reader *r);
/* Readable (level) while reader_run has something to do. Borrowed. */
int reader_fd(const struct reader *r);
/* done is called from a later reader_run, once. 0; -EACCES: the process hangs us now, or others of
 * its user; -EAGAIN: all threads hang, or too much waits; -EINVAL, -ENOMEM. */
int reader_submit(struct reader *r, const struct reader_request *q, reader_done *done, void *ctx);
/* Calls back for what is read, gives up on what is past its deadline. now_ns: CLOCK_MONOTONIC. To
 * be called when reader_fd is readable and a few times a second. */
void reader_run(struct reader *r, uint64_t now_ns);
/* How many threads hang now. */
unsigned reader_hanging(struct reader *r);

#endif
