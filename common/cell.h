/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the tools that have no right sit: prof-deltas, prof-symd and prof-export, which read what
 * strangers wrote. The identity (sandbox.h) is one part of it; this is the other: which system
 * calls are left to them, in two steps, since nng starts its threads between.
 *
 *   cell_enter   after sandbox_enter, before the first socket: what opening sockets takes
 *   cell_seal    sockets are there, and nothing was read of a peer: what reading, writing and
 *                waiting take; for all threads
 *
 * By hand there are no sockets, and files are opened by their paths: cell_by_hand.
 */
#ifndef PROFPIPE_CELL_H
#define PROFPIPE_CELL_H

#include <stdbool.h>
#include <stddef.h>

struct cell {
	bool listens; /* takes peers, also when sealed */
	bool writes;  /* a file that it was handed */
};

/* All three: 0; -EOPNOTSUPP: the kernel has no filters, and all else was done; -errno: exit. */
int cell_enter(const struct cell *c);
int cell_seal(const struct cell *c);
/* No sockets, programs or other processes; files are opened for reading only. */
int cell_by_hand(void);

#endif
