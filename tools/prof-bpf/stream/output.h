/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of the stream: in a deployment over the bus to prof-symd, which may connect and
 * disconnect; by hand to a file or a pipe.
 */
#ifndef PROF_BPF_STREAM_OUTPUT_H
#define PROF_BPF_STREAM_OUTPUT_H

#include "common/base/files/outfile.h"
#include "tools/prof-bpf/stream/charges.h"
#include "tools/prof-bpf/stream/emit.h"
#include "tools/prof-bpf/stream/outbox.h"

struct output {
	struct emit *emit;	/* makes the stream; owned by the creator */
	struct bus *bus;	/* in a deployment only, NULL by hand; likewise owned */
	struct outbox outbox;	/* in a deployment only */
	struct charges charges; /* the owners charged for the contents of the outbox */
	bool has_peer;		/* prof-symd is connected, and an epoch was begun for it */
	uint64_t breaks;	/* how often messages to a peer may have been lost without being
				 * counted */
	bool objects_lost;	/* copies of interpreters' objects did not reach prof-symd */
	struct outfile file;	/* by hand only; the file at path */
	int fd;			/* by hand only, borrowed */
	const char *path;	/* of fd, borrowed; NULL: standard output */
	bool begun;		/* fd was written to */
	bool failed;		/* fd cannot be written to; this was logged */
};

/* By hand: opens the output at path (borrowed), or standard output for NULL. Returns 0 or -errno,
 * logged. */
int output_open(struct output *o, const char *path, mode_t mode);
/* Closes the output. A recording that was cut short is kept, since there is no other. Returns false
 * if closing failed, which is logged. */
bool output_close(struct output *o);
/* Takes a batch: the flush of struct emit_config, with the struct output as ctx. */
int output_batch(void *ctx, struct span batch);
/* Handles the result r of a function of emit.h. After an error within definitions, neither side
 * knows which of them exist, so a new epoch begins. */
void output_emitted(struct output *o, int r);
/* Whether prof-symd is connected and keeps up. Always false by hand. */
bool output_peer_takes(const struct output *o);
/* Like output_peer_takes, for a sample or an object of this owner. */
bool output_peer_takes_of(struct output *o, const struct owner *w);
/* output_at returns the current position of the stream. output_charge charges an owner for
 * everything since a position. */
uint64_t output_at(const struct output *o);
void output_charge(struct output *o, struct owner *w, uint64_t since);
/* Call these when the peer connects or disconnects. Both drop what was meant for the previous
 * peer. */
void output_peer_came(struct output *o);
void output_peer_went(struct output *o);
/* Whether there is a receiver. */
bool output_has_receiver(const struct output *o);

#endif
