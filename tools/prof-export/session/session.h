/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: one export, from the bytes of a stream to one format. Text, recordings and OTLP are
 * written while the stream comes, the other formats at its end. In an OTLP file, four bytes in
 * big-endian order with its length precede each request, as in files of the Collector's file
 * exporter.
 */
#ifndef PROF_EXPORT_SESSION_SESSION_H
#define PROF_EXPORT_SESSION_SESSION_H

#include "common/base/command/format.h"
#include "common/base/command/reporting.h"
#include "common/wire/stream.h"
#include "tools/prof-export/model/model.h"
#include "tools/prof-export/model/model_state.h"
#include "tools/prof-export/otlp/otlp.h"
#include "tools/prof-export/output/output.h"
#include "tools/prof-export/output/record.h"
#include "tools/prof-export/output/text.h"

struct session_options {
	enum format format;
	bool threads;		    /* folded: the thread's name is a frame */
	bool lines;		    /* folded: interpreted frames have their line numbers */
	bool code;		    /* mark what kind of code runs in an interpreted frame */
	bool interpreter_frames;    /* also show the native frames of an interpreter's loop */
	struct reporting reporting; /* `names` is for all formats, the rest for OTLP */
	size_t memory_max;	    /* of the model and the windows, in bytes */
	size_t requests_max;	    /* OTLP: further bytes, for the windows */
	uint64_t share_most;	    /* as in struct model_options */
	size_t others;		    /* as in struct model_options */
	bool joins;		    /* as in struct model_options */
	/* OTLP: takes each request with its gzip form, as `flush` of struct otlp_options. NULL:
	 * requests are written to the output. */
	int (*send)(void *ctx, const struct request *r);
	void *send_ctx;
	/* There are several senders, one after another: if one lost its own sender, another one
	 * follows with a new epoch. */
	bool many;
};

struct session {
	struct session_options options;
	struct stream_in in;
	struct model *model;
	struct output output;
	struct text text;
	struct record record;
	struct otlp otlp;
	bool begun; /* a hello came, so there will be an output */
	bool lost;  /* the sender lost its own sender: its stream is over, another one may follow */
	bool again; /* messages that come now were already sent: make no requests of them */
};

/* fd is borrowed. Returns 0, -ENOMEM, or -EINVAL if memory_max is too small. session_done frees the
 * session, also after an error. */
int session_init(struct session *s, const struct session_options *o, int fd);
void session_done(struct session *s);

/* Takes bytes. Returns 0 when the stream has ended (with `many`: one sender's stream, see `lost`),
 * else STREAM_AGAIN, STREAM_MALFORMED, STREAM_SCHEMA, -ENOMEM, or the output's error. */
int session_feed(struct session *s, struct span bytes);
/* With `send`: an earlier prof-export already sent what is fed until session_replayed. */
void session_replay(struct session *s);
void session_replayed(struct session *s);
/* The sender left or broke the rules: drops its unread rest. Another sender may follow. */
void session_reopen(struct session *s);

/* The state between two epochs: what the next prof-export needs to continue a format that is
 * written while the stream comes. */
struct session_mark {
	uint64_t output_bytes, record_epoch;
	uint64_t window_begin_ns, window_end_ns; /* of the OTLP window; both 0: none is open */
	struct model_journal_state model;
};
/* Whether the format of the session can have such a mark. */
bool session_may_settle(const struct session *s);
/* Writes all that came, and fills in the mark. Returns 0, -ENOMEM, or the output's error. */
int session_settle(struct session *s, struct session_mark *ret);
/* Makes a new session continue at a mark. Returns -EBADMSG if this is no mark, else errors of the
 * output. */
int session_resume(struct session *s, const struct session_mark *mark);

/* The time on this host is now ns by CLOCK_MONOTONIC: a live stream may be silent. Returns 0 or the
 * output's error. */
int session_time(struct session *s, uint64_t ns);
/* Takes a figure of the run that the stream lacks. A recording also contains it, unless it has
 * ended. Returns 0, -ENOMEM, or the output's error. */
int session_tell(struct session *s, struct str name, uint64_t value);
/* Switches to another output: completes the present one, as session_finish does, and writes what
 * follows to fd (borrowed). The next bytes must begin a new epoch. Not for recordings. *ret_status:
 * the figures of the completed output. Returns that output's error. */
int session_turn(struct session *s, int fd, struct status *ret_status);
/* Writes what was collected and completes the format. Call it only after a hello. Returns 0,
 * -ENOMEM, or the output's error. */
int session_finish(struct session *s);

#endif
