/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches on their way to a peer that may be slow: prof-bpf never waits for one. What the bus does
 * not take at once stays here, up to a ceiling; well below it `outbox_pressed` says that samples
 * are to be dropped, so that definitions and answers always have room.
 */
#ifndef PROFPIPE_OUTBOX_H
#define PROFPIPE_OUTBOX_H

#include <stdbool.h>
#include "common/wire/bus.h"

struct outbox_item;
struct outbox {
	struct bus *bus; /* borrowed */
	struct outbox_item *items;
	size_t bytes, max;
};
/* Sends a batch, or keeps a copy. 0; -ENOTCONN: nobody is there, it is dropped; -ENOBUFS at the
 * ceiling; -ENOMEM; -errno. */
int outbox_put(struct outbox *o, struct span batch);
/* Sends what the bus takes now. 0, -ENOTCONN, -errno. */
int outbox_run(struct outbox *o);
bool outbox_pressed(const struct outbox *o);
/* Drops everything: the peer is another. */
void outbox_reset(struct outbox *o);

#endif
