/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Displaced: mappings of a process that others took the place of, for as long as samples may have
 * been walked with them. The kernel walks with the mappings that were published last; of a newer
 * one it knows when the record of it was drained and the process was published again. Rows of the
 * file that was there say nothing of the code that is there now.
 */
#ifndef PROFPIPE_DISPLACED_H
#define PROFPIPE_DISPLACED_H

#include "bpf/sample.h"
#include "tools/prof-bpf/host/maps.h"

#define DISPLACED_MAX 16 /* of a process; the oldest go first */

struct displaced;

/* Notes what `by`, mapped between since_ns and time_ns, takes the place of. was: what is known to
 * be mapped (borrowed). generation: of the mappings published last. *d is NULL where there was
 * nothing yet.
 * 0; or the newest generation with which samples may have been walked of which nothing is known any
 * more, for want of room or memory. */
uint32_t displaced_note(struct displaced **d, const struct maps *was, const struct map *by,
			uint64_t since_ns, uint64_t time_ns, uint32_t generation);
/* How many of the sample's user frames, from the leaf on, lie before the first one that is in what
 * was displaced by then. d may be NULL. */
unsigned displaced_before(const struct displaced *d, const struct sample *s);
/* Whether something in [start, end), which are user addresses, took another's place behind then. d
 * may be NULL. */
bool displaced_since(const struct displaced *d, uint64_t start, uint64_t end, uint64_t time_ns);
/* A copy, the caller's; of NULL it is NULL. False: no memory. */
bool displaced_copy(const struct displaced *d, struct displaced **ret);
/* Takes NULL. */
void displaced_free(struct displaced *d);

#endif
