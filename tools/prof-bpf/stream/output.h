/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of the stream: over the bus to prof-symd, which may come and go; or by hand to a file
 * or a pipe.
 */
#ifndef PROF_BPF_STREAM_OUTPUT_H
#define PROF_BPF_STREAM_OUTPUT_H

#include "common/base/files/outfile.h"
#include "tools/prof-bpf/stream/charges.h"
#include "tools/prof-bpf/stream/emit.h"
#include "tools/prof-bpf/stream/outbox.h"

struct output {
	struct emit *emit;	/* makes the stream; owned by the creator */
	struct bus *bus;	/* deployed only, NULL by hand; owned likewise */
	struct outbox outbox;	/* deployed only */
	struct charges charges; /* of what is in it */
	bool has_peer;		/* prof-symd is connected, and an epoch was begun for it */
	uint64_t breaks;	/* how often messages to a peer may have been lost uncounted */
	bool objects_lost;	/* copies of interpreters' objects did not reach prof-symd */
	struct outfile file;	/* by hand only; the file at path */
	int fd;			/* by hand only, borrowed */
	const char *path;	/* of fd, borrowed; NULL: standard output */
	bool begun;		/* fd was written to */
	bool failed;		/* fd cannot be written to; this was logged */
};

/* By hand: opens the output at path (borrowed), or standard output for NULL. -errno, logged. */
int output_open(struct output *o, const char *path, mode_t mode);
/* Closes it. A recording that was cut is all that there is, so it stays. False: that failed, and
 * was logged. */
bool output_close(struct output *o);
/* Takes a batch; the flush of struct emit_config, with the struct output as ctx. */
int output_batch(void *ctx, struct span batch);
/* Handles the result r of a function of emit.h. After an error within definitions, neither side
 * knows which of them exist, so a new epoch begins. */
void output_emitted(struct output *o, int r);
/* Whether prof-symd is connected and keeps up. False by hand. */
bool output_peer_takes(const struct output *o);
/* Likewise, for a sample or an object of this owner's. */
bool output_peer_takes_of(struct output *o, const struct owner *w);
/* How far the stream is; and charges an owner for what was put since. */
uint64_t output_at(const struct output *o);
void output_charge(struct output *o, struct owner *w, uint64_t since);
/* The peer is another one, or gone: drops what was meant for the last one. */
void output_peer_came(struct output *o);
void output_peer_went(struct output *o);
/* Whether there is a receiver. */
bool output_has_receiver(const struct output *o);

#endif
