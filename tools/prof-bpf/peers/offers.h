/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offers: files that prof-symd is told to look at as soon as they are mapped, and not with their
 * first sample, since they may be interpreters. To describe one takes prof-symd some milliseconds,
 * and until then its frames are native ones.
 *
 * Anybody may name a file like an interpreter, so there are OFFERS_MAX at once, and one more each
 * second.
 */
#ifndef PROFPIPE_OFFERS_H
#define PROFPIPE_OFFERS_H

#include <stdbool.h>
#include <stdint.h>

#define OFFERS_MAX 16

struct host_file;

struct offers {
	bool wanted; /* deployed: somebody is to be told */
	uint32_t files[OFFERS_MAX];
	unsigned count;	  /* of files, yet to be sent */
	unsigned open;	  /* sent, and prof-symd has not said yet what they hold */
	uint64_t paid_ns; /* by when the offers made so far are paid for */
};

/* Offers a file that was mapped, unless it is known or there are too many. chosen: it belongs to the
 * programs that the run is about; else its name has to be an interpreter's. */
void offers_add(struct offers *o, struct host_file *f, bool chosen, uint64_t now_ns);
/* The next one to send; 0: none. */
uint32_t offers_take(struct offers *o);
/* It was sent. */
void offers_sent(struct offers *o);
/* It is known what became of the offer, if there was one. */
void offers_close(struct offers *o, struct host_file *f);
/* None is to be sent, and none is open. */
bool offers_idle(const struct offers *o);

#endif
