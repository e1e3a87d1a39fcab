/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners of the bytes that wait in the outbox (outbox.h). The bytes of a sample or an object
 * are charged to the owner of its process until the outbox has sent them. While the outbox is half
 * full, an owner may add more only if it has less than its fair share of that half. So an owner
 * that makes prof-symd slow does not cost the others samples.
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
	struct owners *owners; /* borrowed; NULL: nobody is charged */
	struct charge *list;   /* in the order of the stream */
	unsigned count;
	uint64_t flushed; /* bytes of all batches so far */
};

/* A batch of the stream was handed on. */
void charges_flushed(struct charges *c, size_t bytes);
/* How far the stream is, counting the packed bytes that no batch has taken. */
uint64_t charges_at(const struct charges *c, size_t packed);
/* The stream grew from `from` to `to` for this owner. */
void charges_add(struct charges *c, struct owner *w, uint64_t from, uint64_t to);
/* Gives back what the outbox has sent. */
void charges_sent(struct charges *c, const struct outbox *o);
/* Whether the owner may add more. */
bool charges_may(const struct charges *c, const struct outbox *o, const struct owner *w);
/* Gives all back. */
void charges_done(struct charges *c);

#endif
