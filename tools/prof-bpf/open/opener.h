/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opener opens files that processes chose, in threads that may hang (FUSE, NFS, a device), and
 * never in the caller's thread.
 *
 * It opens a file for reading only after an O_PATH descriptor shows a regular file. It resolves
 * paths below a process's root, without magic links. Files without a name that live in memory, such
 * as memfds, are handed out as sealed copies. Otherwise the receiver could reopen the descriptor
 * for writing.
 */
#ifndef PROF_BPF_OPEN_OPENER_H
#define PROF_BPF_OPEN_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/prof-bpf/open/request.h"

#define OPENER_THREADS 8		 /* threads that may hang at once */
#define OPENER_THREADS_DEVICE 2		 /* of them on one device */
#define OPENER_DEADLINE_NS 1000000000ull /* per open */
#define OPENER_QUEUE_MAX 8192		 /* waiting requests */

typedef void opener_done(void *ctx, const struct opener_result *r);

struct opener;

/* Starts the threads. proc: the path of a mounted proc, "/proc". -errno, -ENOMEM. The caller owns
 * *ret. */
int opener_new(const char *proc, struct opener **ret);
/* Leaves hanging threads behind, with what they hold. Calls no callback any more. */
void opener_free(struct opener *o);
/* Readable (level) while opener_run has something to do. Borrowed. */
int opener_fd(const struct opener *o);
/* Queues a request. A later opener_run calls done, once. *ret_ticket is never 0. 0, -EINVAL (a name
 * with a slash, too long), -ENOBUFS, -ENOMEM. */
int opener_submit(struct opener *o, const struct opener_request *q, opener_done *done, void *ctx,
		  uint64_t *ret_ticket);
/* The callback of this ticket will not be called. */
void opener_cancel(struct opener *o, uint64_t ticket);
/* Calls back for finished requests, and gives up on those past their deadline. now_ns:
 * CLOCK_MONOTONIC. Returns the number of callbacks. Call it when opener_fd is readable, and a few
 * times a second. */
size_t opener_run(struct opener *o, uint64_t now_ns);

/* For tests: how many threads are past their deadline now. */
unsigned opener_hanging(struct opener *o);

#endif
