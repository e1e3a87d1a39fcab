/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opener opens files that processes chose. It does so in workers that may hang (workerpool.h),
 * and never in this process.
 *
 * A worker opens a file for reading only after an O_PATH descriptor shows a regular file. It
 * resolves paths below a process's root, without magic links. Some files are handed out as sealed
 * copies (sealed.h): those without a name that live in memory, such as memfds, and those on foreign
 * file systems (mounts.h). So neither reading nor closing such a descriptor ever waits for a
 * server. Copies are limited, in total and for each owner (copies.h).
 */
#ifndef PROF_BPF_OPEN_OPENER_H
#define PROF_BPF_OPEN_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/prof-bpf/open/opening/opener_request.h"

#define OPENER_DEADLINE_NS 1000000000ull /* time for each open */

typedef void opener_done(void *ctx, const struct opener_result *r);

struct workerpool;
struct opener;
struct owners;

/* pool is borrowed. copies_max: limit of bytes for all copies. The caller owns *ret. Returns 0 or
 * -ENOMEM. */
int opener_new(struct workerpool *pool, uint64_t copies_max, struct opener **ret);
/* Call it after the pool of workers was freed. */
void opener_free(struct opener *o);
/* Sets the ledger for copies; NULL: forgets it, with all owners. */
void opener_charge(struct opener *o, struct owners *owners);
/* Queues a request. A later workerpool_run calls done, once. *ret_ticket is never 0. Returns 0,
 * -EINVAL (a name with a slash, too long), -ENOBUFS (its owner has too many open requests) or
 * -ENOMEM. */
int opener_submit(struct opener *o, const struct opener_request *q, opener_done *done, void *ctx,
		  uint64_t *ret_ticket);
/* Cancels a request: its callback will not be called. */
void opener_cancel(struct opener *o, uint64_t ticket);
/* Frees the space of copies that are not open any more. Call it a few times a second. */
void opener_tick(struct opener *o, uint64_t now_ns);

struct opener_figures {
	uint64_t copies, copy_bytes;
	uint64_t no_room; /* copies that were not made for lack of space */
};
void opener_figures(const struct opener *o, struct opener_figures *ret);

#endif
