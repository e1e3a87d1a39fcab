/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: the bytes that prof-export received, kept for its successor. The launcher makes the
 * file, which has no name, and hands it to each prof-export of the run. It holds the stream's
 * batches in their order, so every reader of a stream can read it. After a SIGKILL it ends inside a
 * message. When a sender leaves or breaks the rules, the journal drops that sender's unread rest.
 *
 * The journal has a maximum size, and drops all that comes after it. If the disk is full, the
 * journal is emptied and keeps nothing more.
 */
#ifndef PROF_EXPORT_SESSION_JOURNAL_H
#define PROF_EXPORT_SESSION_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/prof-export/session/session.h"

struct journal {
	int fd; /* borrowed; -1: none */
	uint64_t bytes, max;
	bool full;
};
#define JOURNAL_NONE ((struct journal){ .fd = -1 })

/* Whether a predecessor received something. */
bool journal_holds(const struct journal *j);
/* Feeds a new session what its predecessors received, and continues behind it. The replay ends at
 * bytes that are no stream, and counts them: prof-export died before it cut them off. beat: called
 * now and then. Returns session_feed's verdict (STREAM_AGAIN if there is nothing), or -errno of
 * reading. */
int journal_replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx);
/* Feeds and keeps a sender's bytes. Returns session_feed's verdict. A second hello with another
 * schema is STREAM_MALFORMED too; both are counted. */
int journal_feed(struct journal *j, struct session *s, struct span bytes);
/* Reopens the session (session_reopen) and the journal. */
void journal_reopen(struct journal *j, struct session *s);

#endif
