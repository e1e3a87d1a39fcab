/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream's two ends. A sender packs messages into batches, each headed by its epoch and
 * sequence number; a receiver takes them apart, counts what is missing, and says when the stream
 * ended or was cut. The bytes are the same over a bus (one nng message a batch), a pipe and a file.
 */
#ifndef PROFPIPE_STREAM_H
#define PROFPIPE_STREAM_H

#include "common/wire/msg.h"

/* --- sending --- */

struct stream_out {
	struct buf batch;    /* the batch being packed */
	uint64_t epoch, seq; /* of the next batch */
	uint64_t in_batch;   /* messages packed so far */
	size_t batch_max;    /* flush when this is reached, in bytes */
	/* Gets one whole batch and takes all of it or nothing. 0, or a negative errno that
	 * stream_put hands up. One that drops a batch and returns 0 has the receiver count its
	 * messages as missing. */
	int (*flush)(void *ctx, struct span batch);
	void *ctx;
};
void stream_out_init(struct stream_out *s, size_t batch_max, int (*flush)(void *, struct span),
		     void *ctx);
void stream_out_done(struct stream_out *s);
/* A new pipe to the same or another receiver: what was packed is discarded, sequence numbers start
 * again. */
void stream_out_epoch(struct stream_out *s, uint64_t epoch);
/* Packs m, flushing a full batch before it. Errors of msg_encode and of flush: then m was not
 * packed, what was packed before still is, and the next call tries to flush it again. */
int stream_put(struct stream_out *s, const struct msg *m);
/* Flushes what is packed, if anything. */
int stream_flush(struct stream_out *s);

/* --- receiving --- */

enum stream_verdict {
	STREAM_AGAIN = 1,     /* feed more */
	STREAM_MALFORMED = 2, /* not our stream; the pipe is of no further use */
	STREAM_SCHEMA = 3,    /* its first message says another schema */
};
struct stream_in {
	struct buf pending; /* bytes fed and not yet taken */
	struct msg_scratch scratch;
	bool hello_seen, batch_seen, ended;
	uint64_t epoch;	  /* of the newest batch */
	uint64_t seen;	  /* messages counted in this epoch */
	uint64_t missing; /* messages known to be lost, over all epochs, until taken by
			     stream_missing */
	bool new_epoch;	  /* set when a batch of another epoch begins (not at the first): forget all
			     ids, then clear it */
	size_t taken;	  /* bytes at the front of pending that were handed out */
	enum msg_way way; /* other messages are malformed; at first MSG_EVERY_WAY */
};
/* For a new pipe; another pipe gets another stream_in, so that half a batch of the old one cannot
 * run into it. */
void stream_in_init(struct stream_in *s);
void stream_in_done(struct stream_in *s);
/* Appends bytes. -ENOBUFS when more than a few messages pile up untaken, -ENOMEM. */
int stream_feed(struct stream_in *s, struct span bytes);
/* Takes the next message (batch heads are handled inside, unknown messages skipped). The first is
 * always a HELLO of our schema, and nothing follows an END. 0, enum stream_verdict, -ENOMEM. What
 * *ret borrows holds until the next call on s. */
int stream_next(struct stream_in *s, struct msg *ret);
/* Messages lost since the last call. */
uint64_t stream_missing(struct stream_in *s);

#endif
