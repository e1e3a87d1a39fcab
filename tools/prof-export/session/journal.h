/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: the bytes that prof-export received, kept in case it dies, for the prof-export that
 * replaces it. The launcher makes the file, which has no name, and passes it to each prof-export of
 * the run. It contains the stream's batches in order, so every reader of a stream can read it.
 * After a SIGKILL it ends inside a message. When a sender leaves or breaks the rules, the journal
 * drops that sender's unread rest.
 *
 * In a format that is written while the stream comes, samples are already in the output. So the
 * journal *rolls* at the beginning of an epoch, which needs nothing that came before. It stores a
 * mark, which says how much of the output is complete and what was counted, and frees the space of
 * everything before it. prof-symd begins new epochs often enough, so such a run can last forever.
 *
 * For other formats the journal has a maximum size, and drops all that comes after it. If the disk
 * is full, the journal is emptied and keeps nothing more. A format that rolls keeps its mark even
 * then. If prof-export is killed, the output only lacks what came between that mark and the next
 * epoch.
 */
#ifndef PROF_EXPORT_SESSION_JOURNAL_H
#define PROF_EXPORT_SESSION_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/prof-export/session/session.h"

struct journal {
	int fd;		     /* borrowed; -1: none */
	uint64_t bytes, max; /* end of the journal in the file; maximum size of the stream in it */
	uint64_t begin;	     /* offset of the stream */
	unsigned mark;	     /* the valid mark, if it has rolled */
	bool rolled;
	bool full; /* keeps nothing until it rolls again */
};
#define JOURNAL_NONE ((struct journal){ .fd = -1 })

/* Whether an earlier prof-export received anything. */
bool journal_holds(const struct journal *j);
/* Feeds a new session everything that earlier prof-exports received, and continues after it. For
 * what the journal has rolled over, the session gets the mark. The replay ends at bytes that are
 * not a stream, and counts them: prof-export died before it removed them. beat: called from time to
 * time. Returns the result of session_feed (STREAM_AGAIN if the journal is empty), an error of
 * session_resume, or -errno of reading. */
int journal_replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx);
/* Feeds a sender's bytes to the session and keeps them. Returns the result of session_feed, or an
 * error of session_settle. A second hello with another schema is also STREAM_MALFORMED. Both are
 * counted. */
int journal_feed(struct journal *j, struct session *s, struct span bytes);
/* Another output follows, with the journal fd (-1: none). It begins with the facts about the
 * earlier stream that the next prof-export would need. */
void journal_next(struct journal *j, int fd, const struct model *m);
/* Reopens the session (session_reopen) and the journal. */
void journal_reopen(struct journal *j, struct session *s);

#endif
