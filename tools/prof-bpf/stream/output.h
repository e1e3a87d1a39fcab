/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the stream goes: over the bus to prof-symd, which may come, go and come again; or, run by
 * hand, to a file or a pipe.
 */
#ifndef PROFPIPE_OUTPUT_H
#define PROFPIPE_OUTPUT_H

#include "tools/prof-bpf/stream/emit.h"
#include "tools/prof-bpf/stream/outbox.h"

struct output {
	struct emit *emit;    /* makes the stream; owned by whoever made it */
	struct bus *bus;      /* deployed only, NULL by hand; the same */
	struct outbox outbox; /* deployed only */
	bool has_peer;	      /* prof-symd is there, and an epoch was begun for it */
	bool objects_lost;    /* copies of interpreters' objects did not reach it */
	int fd;		      /* by hand only */
	const char *path;     /* of fd, borrowed; NULL: it is the standard output */
	bool begun;	      /* fd was written to */
	bool failed;	      /* fd cannot be written to, which was logged */
};

/* Takes a batch; the flush of struct emit_config, with the struct output as its ctx. */
int output_batch(void *ctx, struct span batch);
/* r: what a function of emit.h returned. An error in the middle of definitions leaves both sides
 * unsure of what is known, so a new epoch begins. */
void output_emitted(struct output *o, int r);
/* prof-symd is there, and not behind. False by hand. */
bool output_peer_takes(const struct output *o);
/* The peer is another one, or none: drops what was meant for the last one. */
void output_peer_came(struct output *o);
void output_peer_went(struct output *o);
/* Some receiver is there. */
bool output_has_receiver(const struct output *o);

#endif
