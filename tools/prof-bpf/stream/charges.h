/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners of the bytes that wait in the outbox (outbox.h). The bytes of a sample or an object
 * are charged to the owner of its process until the outbox has sent them. While the outbox is half
 * full, an owner may add more only if it has less than its fair share of that half. So if one owner
 * makes prof-symd slow, the others lose no samples.
 */
#ifndef PROF_BPF_STREAM_CHARGES_H
#define PROF_BPF_STREAM_CHARGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct charge;
struct outbox;
struct owner;
struct owners;

struct charges {
	struct owners *owners; /* borrowed; NULL: no owner is charged */
	struct charge *list;   /* in the order of the stream */
	unsigned count;
	uint64_t flushed; /* total bytes of all batches so far */
};

/* Records that a batch of the stream was passed on. */
void charges_flushed(struct charges *c, size_t bytes);
/* Returns the current position of the stream, including packed bytes that are in no batch yet. */
uint64_t charges_at(const struct charges *c, size_t packed);
/* Charges the bytes from `from` to `to` of the stream to this owner. */
void charges_add(struct charges *c, struct owner *w, uint64_t from, uint64_t to);
/* Releases the bytes that the outbox has sent. */
void charges_sent(struct charges *c, const struct outbox *o);
/* Whether the owner may add more. */
bool charges_may(const struct charges *c, const struct outbox *o, const struct owner *w);
/* Releases everything. */
void charges_done(struct charges *c);

#endif
