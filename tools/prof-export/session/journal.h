/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: the bytes that prof-export received, kept for its successor. The launcher makes the
 * file, which has no name, and hands it to each prof-export of the run. It holds the stream's
 * batches in their order, so every reader of a stream can read it. After a SIGKILL it ends inside a
 * message. When a sender leaves or breaks the rules, the journal drops that sender's unread rest.
 *
 * A format that is written as the stream comes has its samples in the output. So at the beginning
 * of an epoch, which needs nothing of what came before, the journal *rolls*: it keeps a mark of how
 * far the output is whole and of what was counted, and the space of all before it is given back.
 * prof-symd begins a new epoch often enough. So such a run may go on forever.
 *
 * For other formats the journal has a maximum size, and drops all that comes after it. If the disk
 * is full, it is emptied and keeps nothing more. A format that rolls has its mark even then: what
 * the output gets from then on until the next epoch is lost if prof-export is killed.
 */
#ifndef PROF_EXPORT_SESSION_JOURNAL_H
#define PROF_EXPORT_SESSION_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/prof-export/session/session.h"

struct journal {
	int fd;		     /* borrowed; -1: none */
	uint64_t bytes, max; /* where it ends in the file; how much of a stream it may hold */
	uint64_t begin;	     /* where the stream begins */
	unsigned mark;	     /* which one counts, if it has rolled */
	bool rolled;
	bool full; /* keeps nothing until it rolls again */
};
#define JOURNAL_NONE ((struct journal){ .fd = -1 })

/* Whether a predecessor received something. */
bool journal_holds(const struct journal *j);
/* Feeds a new session what its predecessors received, and continues behind it. Of what a journal
 * has rolled over, the session gets the mark. The replay ends at bytes that are no stream, and
 * counts them: prof-export died before it cut them off. beat: called now and then. Returns
 * session_feed's verdict (STREAM_AGAIN if there is nothing), errors of session_resume, or -errno of
 * reading. */
int journal_replay(struct journal *j, struct session *s, void (*beat)(void *ctx), void *ctx);
/* Feeds and keeps a sender's bytes. Returns session_feed's verdict, or an error of session_settle.
 * A second hello with another schema is STREAM_MALFORMED too; both are counted. */
int journal_feed(struct journal *j, struct session *s, struct span bytes);
/* Another output follows, whose journal is fd (-1: none). It begins with what a successor has to
 * know of the stream before it. */
void journal_next(struct journal *j, int fd, const struct model *m);
/* Reopens the session (session_reopen) and the journal. */
void journal_reopen(struct journal *j, struct session *s);

#endif
