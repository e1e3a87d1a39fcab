/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cell confines the tools without rights, prof-deltas, prof-symd and prof-export, which read
 * untrusted bytes. It adds to their identity (sandbox.h) an empty root and an empty network
 * (emptyroot.h), Landlock (landlock.h), and a list of allowed system calls (seccomp.h). A tool
 * opens its sockets after it has dropped its rights, and nng then starts threads. So it enters the
 * cell in three steps:
 *
 *   cell_prepare   with the caller's rights
 *   cell_enter     after sandbox_enter, before the first socket: the tool can still open sockets
 *   cell_seal      after the last socket, before the first byte of a peer: all threads can only
 *                  read, write and wait
 *
 * Each part alone stops most attacks, so a tool runs without a part that the host lacks. Under
 * AddressSanitizer there is no cell. By hand a tool has no sockets and opens files by their paths;
 * it calls cell_by_hand instead.
 */
#ifndef COMMON_CELL_CELL_H
#define COMMON_CELL_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include "common/cell/confine/emptyroot.h"

struct cell {
	bool listens; /* it accepts peers, even when sealed */
	bool writes;  /* it writes a file whose descriptor it was given */
	bool makes;   /* it creates files in memory */
	/* Set by cell_prepare: the parts that this host supports. */
	bool root, calls;
	int landlock; /* version; 0: none */
	struct emptyroot place;
};

/* folder and user: as in emptyroot_prepare; borrowed until cell_seal. */
void cell_prepare(struct cell *c, const char *folder, bool user);
/* own: the folder of a listener's sockets, else NULL. 0; after -errno, which is logged, the tool
 * must exit. */
int cell_enter(struct cell *c, const char *own);
/* The same errors. */
int cell_seal(struct cell *c);

enum cell_hand {
	CELL_READS,	  /* opens files, only to read */
	CELL_READS_BELOW, /* also by openat2, whose flags a filter cannot see */
	CELL_WRITES,	  /* writes open files */
};
/* Forbids sockets, programs and other processes. Returns 0, or -errno, logged. */
int cell_by_hand(enum cell_hand how);

#endif
