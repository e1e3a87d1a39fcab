/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offers: files that prof-symd should look at as soon as they are mapped, before their first
 * sample, since they may be interpreters. prof-symd needs some milliseconds to describe one, and
 * until then its frames appear as native ones.
 *
 * Any user may name a file like an interpreter. So at most OFFERS_MAX offers are open, plus one per
 * second. One owner may have a quarter of these, except for root. Files that only the host's root
 * could have written do not count, and come first: users cannot make any.
 */
#ifndef PROF_BPF_PEERS_OFFERS_H
#define PROF_BPF_PEERS_OFFERS_H

#include <stdbool.h>
#include <stdint.h>

#define OFFERS_MAX 16

struct host_file;

struct offers {
	bool wanted; /* in a deployment: there is a receiver */
	uint32_t files[2 * OFFERS_MAX];
	unsigned count;	  /* files still to be sent */
	unsigned hosts;	  /* how many of them, the first ones, are of the host's root */
	unsigned open;	  /* sent, but not answered by prof-symd yet */
	uint64_t paid_ns; /* when the budget covers the offers made so far */
};

/* Offers a mapped file, unless it is known or there are too many offers. chosen: it belongs to the
 * programs that the run samples; otherwise it must have an interpreter's name. */
void offers_add(struct offers *o, struct host_file *f, bool chosen, uint64_t now_ns);
/* Returns the id of the next file to send; 0: none. */
uint32_t offers_take(struct offers *o);
/* Records that the offer was sent. */
void offers_sent(struct offers *o);
/* Closes the offer of a file, if there is one, because its result is known. */
void offers_close(struct offers *o, struct host_file *f);
/* Whether no offer is unsent or open. */
bool offers_idle(const struct offers *o);

#endif
