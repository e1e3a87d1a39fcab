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
	uint64_t bytes;	     /* flushed so far in this epoch */
	size_t batch_max;    /* a batch with this many bytes is full */
	/* Takes a whole batch, or nothing. Returns 0, or -errno, which stream_put returns. It may
	 * also drop a batch and return 0; the receiver then counts the messages as missing. */
	int (*flush)(void *ctx, struct span batch);
	void *ctx;
};
void stream_out_init(struct stream_out *s, size_t batch_max, int (*flush)(void *, struct span),
		     void *ctx);
void stream_out_done(struct stream_out *s);
/* There is a new pipe, to the same or another receiver: discards packed messages and restarts the
 * sequence numbers. */
void stream_out_epoch(struct stream_out *s, uint64_t epoch);
/* Packs m, after flushing a full batch. After an error of msg_encode or flush, m is not packed.
 * Earlier messages stay packed, and the next call flushes them again. */
int stream_put(struct stream_out *s, const struct msg *m);
/* Flushes the packed messages, if any. */
int stream_flush(struct stream_out *s);

/* --- receiving --- */

enum stream_verdict {
	STREAM_AGAIN = 1,     /* more bytes are needed */
	STREAM_MALFORMED = 2, /* not a valid stream; the pipe cannot be used any more */
	/* Its first message has another schema or, with of_run, another build. */
	STREAM_SCHEMA = 3,
};
/* Counts of messages and fields that were skipped because this build does not know them. */
struct stream_skipped {
	uint64_t messages, fields;
};
struct stream_in {
	struct buf pending; /* bytes that were fed and not taken yet */
	struct msg_scratch scratch;
	bool hello_seen, batch_seen, ended;
	uint64_t epoch;	  /* of the newest batch */
	uint64_t seen;	  /* messages counted in this epoch */
	uint64_t missing; /* messages lost since the last stream_missing, over all epochs */
	/* Another epoch has begun (not set for the first): the caller must forget all ids, then
	 * clear this. */
	bool new_epoch;
	size_t taken;	  /* bytes at the beginning of pending that were returned */
	enum msg_way way; /* which messages are valid; initially MSG_EVERY_WAY */
	/* It comes from a tool of this run, whose build must be ours; initially false. */
	bool of_run;
	struct stream_skipped skipped;
};
/* For one pipe. A new pipe needs a new stream_in, so that the rest of an incomplete batch does not
 * remain. */
void stream_in_init(struct stream_in *s);
void stream_in_done(struct stream_in *s);
/* Appends bytes. Returns 0, -ENOBUFS if more than four messages of the largest size wait to be
 * taken, or -ENOMEM. */
int stream_feed(struct stream_in *s, struct span bytes);
/* Whether these bytes, if they are fed next, begin with the header of another epoch. */
bool stream_turns(struct stream_in *s, struct span bytes);
/* Takes the next message. Reads batch headers itself, and skips and counts unknown messages and
 * fields. The first message must be a HELLO with a schema that we read, and no message may follow
 * an END. Returns 0, enum stream_verdict or -ENOMEM. Borrowed parts of *ret are valid until the
 * next call on s. */
int stream_next(struct stream_in *s, struct msg *ret);
/* Whether these bytes, if they are fed next, begin another epoch: they can be understood without
 * what was fed before. */
bool stream_begins_epoch(const struct stream_in *s, struct span bytes);
/* The number of messages missing since the last call. */
uint64_t stream_missing(struct stream_in *s);

#endif
