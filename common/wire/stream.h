/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream: its two ends. A sender packs messages into batches, each with its epoch and sequence
 * number. A receiver unpacks them, counts missing messages, and reports whether the stream ended or
 * was cut. The bytes are the same over a bus (one nng message per batch), a pipe and a file.
 */
#ifndef COMMON_WIRE_STREAM_H
#define COMMON_WIRE_STREAM_H

#include "common/wire/msg.h"

/* --- sending --- */

#define STREAM_BATCH (64u << 10) /* bytes of a batch of a named stream */

struct stream_out {
	struct buf batch;    /* the batch being packed */
	uint64_t epoch, seq; /* of the next batch */
	uint64_t in_batch;   /* messages packed so far */
	uint64_t bytes;	     /* flushed in this epoch */
	size_t batch_max;    /* bytes of a full batch */
	/* Takes a whole batch, or nothing: 0, or a negative errno, which stream_put returns. It may
	 * drop a batch and return 0; the receiver counts the messages as missing. */
	int (*flush)(void *ctx, struct span batch);
	void *ctx;
};
void stream_out_init(struct stream_out *s, size_t batch_max, int (*flush)(void *, struct span),
		     void *ctx);
void stream_out_done(struct stream_out *s);
/* A new pipe, to the same or another receiver: discards packed messages and restarts the
 * sequence numbers. */
void stream_out_epoch(struct stream_out *s, uint64_t epoch);
/* Packs m, and flushes a full batch before it. After an error of msg_encode or flush, m is not
 * packed. Earlier messages still are, and the next call flushes them again. */
int stream_put(struct stream_out *s, const struct msg *m);
/* Flushes the packed messages, if any. */
int stream_flush(struct stream_out *s);

/* --- receiving --- */

enum stream_verdict {
	STREAM_AGAIN = 1,     /* feed more */
	STREAM_MALFORMED = 2, /* not our stream; the pipe is useless */
	STREAM_SCHEMA = 3,    /* its first message has another schema, or (of_run) build */
};
/* Well-formed, and skipped because this build does not know them. */
struct stream_skipped {
	uint64_t messages, fields;
};
struct stream_in {
	struct buf pending; /* bytes fed and not yet taken */
	struct msg_scratch scratch;
	bool hello_seen, batch_seen, ended;
	uint64_t epoch;	  /* of the newest batch */
	uint64_t seen;	  /* messages counted in this epoch */
	uint64_t missing; /* lost messages, over all epochs, since the last stream_missing */
	bool new_epoch;	  /* another epoch has begun (not for the first): the caller forgets all
			     ids, then clears this */
	size_t taken;	  /* bytes at the front of pending that were handed out */
	enum msg_way way; /* the only valid messages; MSG_EVERY_WAY at first */
	bool of_run;	  /* from a tool of this run: its build must be ours; false at first */
	struct stream_skipped skipped;
};
/* For one pipe. A new pipe needs a new stream_in, so that it does not continue half a batch of the
 * old one. */
void stream_in_init(struct stream_in *s);
void stream_in_done(struct stream_in *s);
/* Appends bytes. -ENOBUFS if more than four messages of the largest size wait to be taken,
 * -ENOMEM. */
int stream_feed(struct stream_in *s, struct span bytes);
/* Whether these bytes, if they are fed next, begin with the head of another epoch. */
bool stream_turns(struct stream_in *s, struct span bytes);
/* Takes the next message. Reads batch heads itself, and skips and counts unknown messages and
 * fields. The first message is always a HELLO of a schema that we read, and none follows an END. 0,
 * enum stream_verdict, -ENOMEM. Borrowed parts of *ret are valid until the next call on s. */
int stream_next(struct stream_in *s, struct msg *ret);
/* Whether these bytes, fed next, begin another epoch: nothing that was fed before is needed to
 * understand them. */
bool stream_begins_epoch(const struct stream_in *s, struct span bytes);
/* Messages missing since the last call. */
uint64_t stream_missing(struct stream_in *s);

#endif
