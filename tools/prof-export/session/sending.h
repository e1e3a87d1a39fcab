/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending: makes OTLP requests from the stream and passes them to prof-send, in addition to an
 * output or instead of one.
 *
 * The output may merge what OTLP must keep apart. So if there is also an output, the requests have
 * a session of their own, which gets the same messages. It takes a third of the memory. If it
 * fails, the output is not affected.
 *
 * The journal is never replayed into requests, because they were sent already. If prof-export is
 * killed, no request contains the samples of its open window.
 */
#ifndef PROF_EXPORT_SESSION_SENDING_H
#define PROF_EXPORT_SESSION_SENDING_H

#include "tools/prof-export/session/journal.h"
#include "tools/prof-export/session/outlet.h"
#include "tools/prof-export/session/session.h"

struct sending {
	bool on;    /* requests are made */
	bool apart; /* by `own`; else by the session of the output, which has no file then */
	struct outlet outlet;
	struct session own;
};

/* Prepares the options of the output's session. apart: there is also an output. Opens no socket
 * yet. Returns 0, -ENOMEM, or -EINVAL as session_init. */
int sending_init(struct sending *s, struct session_options *main, bool apart);
/* Listens for prof-send. -errno. */
int sending_open(struct sending *s, const char *run_dir, uid_t uid);

/* Without a session of its own, each of these does nothing. */
/* Replays the journal, as the output's session did, but makes no requests of it. */
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

/* Sends the end message to prof-send and closes. whole: false closes at once. Does nothing if `on`
 * is not set. */
void sending_end(struct sending *s, bool whole);
void sending_status(const struct sending *s, struct status *st);

#endif
