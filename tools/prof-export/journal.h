/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was received, kept for a successor: a file without a name that the launcher made and hands
 * to each prof-export of the run. It holds the stream's batches as they came, one behind the other,
 * so that what reads a stream reads it; one that was cut by SIGKILL ends in the middle of a
 * message. It may get so large and no larger: what comes later is not kept. And where it cannot
 * grow any more (a full disk) it gives back what it has: then nothing is kept.
 */
#ifndef PROFPIPE_JOURNAL_H
#define PROFPIPE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/prof-export/session.h"

struct journal {
	int fd; /* borrowed; -1: none */
	uint64_t bytes, max;
};
#define JOURNAL_NONE ((struct journal){ .fd = -1 })

/* Feeds all that predecessors received to a new session, and goes on behind it. session_feed's
 * verdict (STREAM_AGAIN where there is nothing), -errno of reading. beat: called now and then. */
int journal_replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx);
/* What was fed to the session just now. */
void journal_put(struct journal *j, struct span bytes);

#endif
