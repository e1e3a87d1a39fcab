/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: what prof-export received, kept for its successor. It is a file without a name that
 * the launcher makes and hands to each prof-export of the run. It holds the stream's batches in the
 * order they came, so any reader of a stream can read it; after a SIGKILL it ends in the middle of
 * a message. When a sender leaves or breaks the rules, the part that was not taken is cut off again.
 *
 * The journal has a maximum size; what comes later is not kept. If it cannot grow any more, on a
 * full disk, it is emptied, and nothing is kept.
 */
#ifndef PROFPIPE_JOURNAL_H
#define PROFPIPE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/prof-export/session/session.h"

struct journal {
	int fd; /* borrowed; -1: none */
	uint64_t bytes, max;
	bool full;
};
#define JOURNAL_NONE ((struct journal){ .fd = -1 })

/* Feeds all that predecessors received to a new session, and continues behind it. Bytes that are no
 * stream are the end of it and are counted: a sender broke the rules, and prof-export died before
 * it cut them off. beat: called now and then. session_feed's verdict (STREAM_AGAIN if there is
 * nothing), or -errno of reading. */
int journal_replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx);
/* Feeds what a sender sent, and keeps it. session_feed's verdict; STREAM_MALFORMED, which is
 * counted, also for another schema after the first hello. */
int journal_feed(struct journal *j, struct session *s, struct span bytes);
/* Reopens the session (session_reopen) and the journal. */
void journal_reopen(struct journal *j, struct session *s);

#endif
