/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending: makes requests of OTLP out of the stream and hands them to prof-send, beside the output
 * or instead of one.
 *
 * The output may merge what OTLP has to tell apart, so requests that go beside an output have a
 * session of their own, which gets the same messages. It takes a third of the memory. A failure
 * there leaves the output unchanged.
 *
 * A journal is never replayed into requests: they were sent before. If prof-export is killed, the
 * samples of its open window are in no request.
 */
#ifndef PROF_EXPORT_SESSION_SENDING_H
#define PROF_EXPORT_SESSION_SENDING_H

#include "tools/prof-export/session/journal.h"
#include "tools/prof-export/session/outlet.h"
#include "tools/prof-export/session/session.h"

struct sending {
	bool on;    /* requests are made */
	bool apart; /* by `own`; else by the session of the output, which has none */
	struct outlet outlet;
	struct session own;
};

/* Prepares the options of the output's session. apart: there is an output. Opens no socket yet. 0,
 * -ENOMEM, -EINVAL as session_init. */
int sending_init(struct sending *s, struct session_options *main, bool apart);
/* Listens for prof-send. -errno. */
int sending_open(struct sending *s, const char *run_dir, uid_t uid);

/* Each does nothing without a session of its own. */
/* Learns from the journal, which the output's session has replayed, and makes no requests of it. */
void sending_replay(struct sending *s, const struct journal *j, void (*beat)(void *ctx), void *ctx);
void sending_feed(struct sending *s, struct span bytes);
void sending_reopen(struct sending *s);
void sending_tell(struct sending *s, struct str name, uint64_t value);
void sending_hear(struct sending *s, const struct witness_word *w);
void sending_interrupted(struct sending *s, bool replayed);
void sending_over(struct sending *s);
void sending_time(struct sending *s, uint64_t ns);
/* Nothing more comes: makes the last requests. */
void sending_finish(struct sending *s);

/* Says the end to prof-send and closes. whole: false to close at once. Does nothing if it is off.
 */
void sending_end(struct sending *s, bool whole);
void sending_status(const struct sending *s, struct status *st);

#endif
