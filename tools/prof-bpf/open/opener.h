/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disposable opener: opens files that processes chose, in threads that may hang (FUSE, NFS, a
 * device), never in the caller's.
 *
 * Nothing is opened for reading before an O_PATH descriptor of it was seen to be a regular file.
 * Paths are resolved below a process's root, without magic links. Files that have no name and live
 * in memory (memfds and the like) are handed out as sealed copies, since whoever gets a descriptor
 * of one can open it again for writing.
 */
#ifndef PROFPIPE_OPENER_H
#define PROFPIPE_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/prof-bpf/open/request.h"

#define OPENER_THREADS 8		 /* how many may hang at once */
#define OPENER_THREADS_DEVICE 2		 /* how many of them ask one device */
#define OPENER_DEADLINE_NS 1000000000ull /* of one open */
#define OPENER_QUEUE_MAX 8192		 /* requests waiting */

typedef void opener_done(void *ctx, const struct opener_result *r);

struct opener;

/* Starts the threads. proc: the path of a mounted proc, "/proc". -errno, -ENOMEM. The caller owns
 * *ret. */
int opener_new(const char *proc, struct opener **ret);
/* Waits for no thread that hangs: what it holds is left behind. No callback is called any more. */
void opener_free(struct opener *o);
/* Readable (level) while opener_run has something to do. Borrowed. */
int opener_fd(const struct opener *o);
/* Queues a request; done is called from a later opener_run, once. *ret_ticket is never 0. 0,
 * -EINVAL (a name with a slash, too long), -ENOBUFS, -ENOMEM. */
int opener_submit(struct opener *o, const struct opener_request *q, opener_done *done, void *ctx,
		  uint64_t *ret_ticket);
/* The callback of this ticket will not be called. */
void opener_cancel(struct opener *o, uint64_t ticket);
/* Calls back for what is done, gives up on what is past its deadline. now_ns: CLOCK_MONOTONIC. How
 * many callbacks. To be called when opener_fd is readable and a few times a second. */
size_t opener_run(struct opener *o, uint64_t now_ns);

struct opener_figures {
	uint64_t opened, failed, timeouts, copies;
	unsigned hanging; /* threads past their deadline now */
};
void opener_figures(struct opener *o, struct opener_figures *ret);

/* The same, here and now, by whoever may wait (a tool run by hand, tests). proc: an O_PATH
 * descriptor. */
void opener_open_now(int proc, const struct opener_request *q, struct opener_result *ret);

#endif
