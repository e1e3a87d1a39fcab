/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver takes the stream of prof-symd, which may come and go, and beside it the words of the
 * launcher, of prof-bpf (witness.h) and of prof-send.
 */
#ifndef PROF_EXPORT_RECEIVER_H
#define PROF_EXPORT_RECEIVER_H

#include "common/wire/bus/bus.h"
#include "common/wire/datagram.h"
#include "tools/prof-export/job.h"
#include "tools/prof-export/session/journal.h"

struct receiver {
	struct job *job; /* borrowed */
	const struct deploy *deploy;
	struct bus *bus;
	struct journal journal;
	struct deploy_word word; /* the launcher's latest facts about the run */
	bool told;		 /* the session has not received these facts yet */
	bool there, last;	 /* prof-symd is connected; no other prof-symd will follow */
	bool deaf;		 /* prof-symd was dropped: ignore its leftovers */
	struct datagram witness; /* receives the reports of prof-bpf */
	unsigned peers;		 /* how many prof-symds have connected so far */
	unsigned rests;		 /* consecutive pauses for lack of memory */
	uint64_t told_ns;
};

/* Call it before the list of system calls, which has no timers, and before threads start. The
 * reader of a pipe or a terminal (fd) may be slow. A timer interrupts each write that waits for it,
 * so that the launcher hears that prof-export lives. nng's threads inherit the blocked signal; only
 * receiver_run unblocks it. */
void receiver_set_watch(int fd);
/* Receives until the stream ends, the last prof-symd leaves, SIGTERM comes, or the launcher leaves.
 * Then closes the bus. session_feed's verdict, -errno; -ECANCELED: the launcher has left. */
int receiver_run(struct receiver *r);

#endif
