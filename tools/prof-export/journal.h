/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was received, kept for a successor: a file without a name that the launcher made and hands
 * to each prof-export of the run. It holds the stream's batches as they came, one behind the other,
 * so that what reads a stream reads it; one that was cut by SIGKILL ends in the middle of a
 * message. Where a sender goes or breaks the rules, what it sent and was not taken is cut off
 * again. It may get so large and no larger: what comes later is not kept. And where it cannot grow
 * any more (a full disk) it gives back what it has: then nothing is kept.
 */
#ifndef PROFPIPE_JOURNAL_H
#define PROFPIPE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/prof-export/session.h"

struct journal {
	int fd; /* borrowed; -1: none */
	uint64_t bytes, max;
	bool full;
};
#define JOURNAL_NONE ((struct journal){ .fd = -1 })

/* Feeds all that predecessors received to a new session, and goes on behind it. What is no stream
 * in it (a sender broke the rules, and nobody lived to cut that off) is its end, and counted.
 * session_feed's verdict (STREAM_AGAIN where there is nothing), -errno of reading. beat: called now
 * and then. */
int journal_replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx);
/* Feeds what a sender sent, and keeps it. session_feed's verdict; for another schema behind a first
 * hello, too, STREAM_MALFORMED, which is counted. */
int journal_feed(struct journal *j, struct session *s, struct span bytes);
/* session_reopen, here and there. */
void journal_reopen(struct journal *j, struct session *s);

#endif
