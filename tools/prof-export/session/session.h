/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: one export, from the bytes of a stream to one format. Text, recordings and OTLP are
 * written as the stream comes, the other formats at its end. In OTLP each request is preceded by
 * its length, four bytes in big-endian order, as by the file exporter of the Collector.
 */
#ifndef PROF_EXPORT_SESSION_SESSION_H
#define PROF_EXPORT_SESSION_SESSION_H

#include "common/base/format.h"
#include "common/base/reporting.h"
#include "common/wire/stream.h"
#include "tools/prof-export/model/saved.h"
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
	struct reporting reporting; /* names: for all formats; the rest: otlp */
	size_t memory_max;	    /* of the model and the windows, in bytes */
	uint64_t share_most;	    /* as in struct model_options */
	size_t others;		    /* likewise */
	bool joins;		    /* likewise */
	/* OTLP: takes requests, which need their gzip bytes, as struct otlp_options has it. NULL:
	 * they are written to the output. */
	int (*send)(void *ctx, const struct request *r);
	void *send_ctx;
	bool many; /* several senders, one after another: after one that lost its own sender, the
		      next one comes, with a new epoch */
};

struct session {
	struct session_options options;
	struct stream_in in;
	struct model *model;
	struct output output;
	struct text text;
	struct record record;
	struct otlp otlp;
	bool begun; /* a hello came: there will be an output */
	bool lost;  /* the sender lost its own sender: its stream is over, another's may follow */
	bool again; /* what comes now was sent before: makes no requests of it */
};

/* fd is borrowed. 0, -ENOMEM, -EINVAL (memory_max is too small). session_done frees, also after an
 * error. */
int session_init(struct session *s, const struct session_options *o, int fd);
void session_done(struct session *s);

/* Takes bytes. 0 when the stream has ended (with `many`: when one sender's has, see `lost`), else
 * STREAM_AGAIN, STREAM_MALFORMED, STREAM_SCHEMA, -ENOMEM, or the output's error. */
int session_feed(struct session *s, struct span bytes);
/* With `send`: what is fed from now on, until session_replayed, was sent by a predecessor. */
void session_replay(struct session *s);
void session_replayed(struct session *s);
/* The sender left or broke the rules: drops its unread rest. Another sender may follow. */
void session_reopen(struct session *s);

/* Between two epochs: what the next prof-export needs to go on with a format that is written as the
 * stream comes. */
struct session_mark {
	uint64_t output_bytes, record_epoch;
	uint64_t window_begin_ns, window_end_ns; /* of OTLP; 0 and 0: none is open */
	struct model_saved model;
};
/* Whether the session has such a mark. */
bool session_may_settle(const struct session *s);
/* Writes all that came. 0, -ENOMEM, or the output's error. */
int session_settle(struct session *s, struct session_mark *ret);
/* Makes a new session continue. -EBADMSG: this is no mark; else errors of the output. */
int session_resume(struct session *s, const struct session_mark *mark);

/* It is ns by CLOCK_MONOTONIC, of this host: a live stream may be silent. 0, or the output's
 * error. */
int session_time(struct session *s, uint64_t ns);
/* Takes a figure of the run that the stream lacks. A recording gets it too, unless it has ended. 0,
 * -ENOMEM, or the output's error. */
int session_tell(struct session *s, struct str name, uint64_t value);
/* Another output follows: writes what was collected, as session_finish does, and goes on in
 * fd (borrowed) with what comes, which must begin a new epoch. Not for recordings. *ret_status: the
 * figures of the output that ended. Its error. */
int session_turn(struct session *s, int fd, struct status *ret_status);
/* Writes what was collected and closes the format. Call it only after a hello. 0, -ENOMEM, or the
 * output's error. */
int session_finish(struct session *s);

#endif
