/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox: batches for a peer that may be slow, since prof-bpf never waits for one. It keeps
 * batches that the bus does not take at once, up to a ceiling. Well below that, outbox_pressed says
 * that samples are to be dropped (charges.h), so that definitions and answers always have room.
 */
#ifndef PROF_BPF_STREAM_OUTBOX_H
#define PROF_BPF_STREAM_OUTBOX_H

#include <stdbool.h>
#include "common/wire/bus/bus.h"

struct outbox_item;
struct outbox {
	struct bus *bus; /* borrowed */
	struct outbox_item *items;
	size_t bytes, max;
};
/* Sends a batch, or keeps a copy. 0; -ENOTCONN: there is no peer, the batch is dropped; -ENOBUFS at
 * the ceiling; -ENOMEM; -errno. */
int outbox_put(struct outbox *o, struct span batch);
/* Sends what the bus takes now. 0, -ENOTCONN, -errno. */
int outbox_run(struct outbox *o);
bool outbox_pressed(const struct outbox *o);
/* Drops everything, since the peer is another one. */
void outbox_reset(struct outbox *o);

#endif
