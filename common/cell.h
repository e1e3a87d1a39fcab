/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the tools that have no right sit: prof-deltas, prof-symd and prof-export, which read what
 * strangers wrote. The identity (sandbox.h) is one part of it. This is the other: a root and a
 * network with nothing in them (emptyroot.h), Landlock, and the system calls that are left
 * (seccomp.h). In three steps, since a tool opens its sockets after it dropped its rights, and nng
 * starts its threads when it does:
 *
 *   cell_prepare   with the caller's rights
 *   cell_enter     after sandbox_enter, before the first socket: what opening sockets takes is left
 *   cell_seal      sockets are there, and nothing was read of a peer: reading, writing and waiting
 *                  are left, for all threads
 *
 * Each part is for itself enough against most of what could be tried, so a host that does not have
 * one is lived with. Under AddressSanitizer there is none. By hand there are no sockets, and files
 * are opened by their paths: cell_by_hand.
 */
#ifndef PROFPIPE_CELL_H
#define PROFPIPE_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include "common/emptyroot.h"

struct cell {
	bool listens; /* takes peers, also when sealed */
	bool writes;  /* a file that it was handed */
	bool makes;   /* files in memory */
	/* What it has; filled in. */
	bool root, calls;
	int landlock; /* its version; 0: none */
	struct emptyroot place;
};

/* folder: see emptyroot_prepare; borrowed until cell_seal. user: as there. */
void cell_prepare(struct cell *c, const char *folder, bool user);
/* own: the folder that a listener's sockets are in, else NULL. Both: 0, -errno: exit. */
int cell_enter(struct cell *c, const char *own);
int cell_seal(struct cell *c);

enum cell_hand {
	CELL_READS,	  /* files are opened, to be read only */
	CELL_READS_BELOW, /* and some by openat2, which can do more: a filter does not see it */
	CELL_WRITES,	  /* what is open already; files can be removed below the folder */
};
/* No sockets, programs or other processes. folder: NULL, none, or with CELL_WRITES. 0, -errno. */
int cell_by_hand(enum cell_hand how, const char *folder);

#endif
