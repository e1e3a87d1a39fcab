/* SPDX-License-Identifier: Apache-2.0 */
/* One export: bytes of a stream in, one format out. Text and recordings are written as the stream
 * comes; the others at its end. */
#ifndef PROFPIPE_SESSION_H
#define PROFPIPE_SESSION_H

#include "common/base/format.h"
#include "common/wire/stream.h"
#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/output.h"
#include "tools/prof-export/output/record.h"
#include "tools/prof-export/output/text.h"

struct session_options {
	enum format format;
	bool threads;		 /* folded: the thread's name is a frame */
	bool lines;		 /* folded: interpreted frames have their line numbers */
	bool interpreter_frames; /* the native frames of an interpreter's loop are shown, too */
	size_t memory_max;	 /* of the model, in bytes */
	uint64_t share_most;	 /* as of struct model_options */
	bool many; /* senders come and go: one that lost its own sender is followed by another, with
		      an epoch of its own */
};

struct session {
	struct session_options options;
	struct stream_in in;
	struct model *model;
	struct output output;
	struct text text;
	struct record record;
	bool begun; /* a hello came: there will be an output */
	bool lost;  /* the sender has lost its own: its stream is over, another's may follow */
};

/* fd is borrowed. 0, -ENOMEM, -EINVAL (memory_max is too small). session_done frees, also after an
 * error. */
int session_init(struct session *s, const struct session_options *o, int fd);
void session_done(struct session *s);

/* Takes bytes. 0 when the stream has ended (with `many`: or one sender's has, see `lost`), else
 * STREAM_AGAIN, STREAM_MALFORMED, STREAM_SCHEMA, -ENOMEM, or the output's error. */
int session_feed(struct session *s, struct span bytes);
/* The sender went, or sent what is no stream: the rest of what it sent is dropped, another one may
 * follow. */
void session_reopen(struct session *s);
/* Takes a figure of the run that the stream does not have; a recording gets it, unless it has
 * ended. 0, -ENOMEM, or the output's error. */
int session_tell(struct session *s, struct str name, uint64_t value);
/* Writes what was collected and closes the format. Only once a hello came. 0, -ENOMEM, or the
 * output's error. */
int session_finish(struct session *s);

#endif
