/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox: batches for a peer that may be slow, since prof-bpf never waits for one. It keeps
 * batches that the bus does not take at once, up to a limit. Well below that, outbox_pressed tells
 * that samples should be dropped (charges.h), so that definitions and answers always fit.
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
/* Sends a batch, or keeps a copy. Returns 0; -ENOTCONN: there is no peer, the batch is dropped;
 * -ENOBUFS at the limit; -ENOMEM; -errno. */
int outbox_put(struct outbox *o, struct span batch);
/* Sends what the bus takes now. Returns 0, -ENOTCONN or -errno. */
int outbox_run(struct outbox *o);
bool outbox_pressed(const struct outbox *o);
/* Drops everything, because another peer has connected. */
void outbox_reset(struct outbox *o);

#endif
