/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offers: files that prof-symd should look at as soon as they are mapped, before their first
 * sample, since they may be interpreters. prof-symd needs some milliseconds to describe one, and
 * until then its frames are native ones.
 *
 * Anybody may name a file like an interpreter. So at most OFFERS_MAX offers are open, plus one per
 * second. A quarter of these may be an owner's, except for root.
 */
#ifndef PROF_BPF_PEERS_OFFERS_H
#define PROF_BPF_PEERS_OFFERS_H

#include <stdbool.h>
#include <stdint.h>

#define OFFERS_MAX 16

struct host_file;

struct offers {
	bool wanted; /* deployed: there is a receiver */
	uint32_t files[OFFERS_MAX];
	unsigned count;	  /* files still to be sent */
	unsigned open;	  /* sent, but prof-symd has not answered yet */
	uint64_t paid_ns; /* when the budget covers the offers made so far */
};

/* Offers a mapped file, unless it is known or there are too many. chosen: it belongs to the
 * programs that the run is about; otherwise its name must be an interpreter's. */
void offers_add(struct offers *o, struct host_file *f, bool chosen, uint64_t now_ns);
/* The id of the next file to send; 0: none. */
uint32_t offers_take(struct offers *o);
/* The offer was sent. */
void offers_sent(struct offers *o);
/* Closes the offer of a file, if there is one: its result is known. */
void offers_close(struct offers *o, struct host_file *f);
/* Whether no offer is unsent or open. */
bool offers_idle(const struct offers *o);

#endif
