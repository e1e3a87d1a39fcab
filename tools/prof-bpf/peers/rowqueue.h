/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of row requests: which request is next.
 *
 * Each owner has a line. What counts is the cpu time of prof-deltas that the owner has spent,
 * together with what its next file is likely to take. The owner with least comes first, so that no
 * owner's files keep those of others waiting, and a small file of a new program does not wait for
 * large files of many users. Owners with nearly the same time come in the order of their files'
 * recent samples, and so do the files within a line. A file that was put aside, because it took
 * long while others waited, comes when no other file waits. After a timeout it also waits for a
 * pause.
 *
 * Waiting requests may hold ROWQUEUE_HELD descriptors. Beyond that the owner who holds most loses
 * one, and its file is opened again when its turn comes.
 */
#ifndef PROF_BPF_PEERS_ROWQUEUE_H
#define PROF_BPF_PEERS_ROWQUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/prof-bpf/peers/quarantine.h"

#define ROWQUEUE_HELD 256
#define ROWQUEUE_NAME_MAX 256
#define ROWQUEUE_NS_PER_BYTE 2		  /* of a file: a coarse guess of its cpu time */
#define ROWQUEUE_GUESS_MAX_NS 50000000ull /* of cpu time: no guess is larger */
#define ROWQUEUE_NEAR_NS 10000000ull	  /* smaller differences do not count */

struct owner;
struct owners;
struct rowline;
struct tables;

struct rowqueue_request {
	uint64_t id; /* rises in the order of sending; 0: not sent yet */
	uint16_t slot;
	uint32_t serial;     /* serial of the slot, which another file may have when the answer
			      * comes */
	int fd;		     /* descriptor to send; -1 after that */
	int spare_fd;	     /* descriptor for repeating the request */
	struct owner *owner; /* NULL: no owner; otherwise it is charged for the request
			      * (OWNER_QUEUE) */
	struct quarantine_key of;
	uint64_t sent_ns;
	unsigned stops;	   /* how often it was put aside */
	unsigned timeouts; /* how often the extractor neither answered nor worked */
	uint64_t again_ns; /* after a timeout: it does not come before this time */
	bool message_sent;
	bool began;    /* the extractor has begun to answer */
	bool alone;    /* an extractor died on it */
	bool stopping; /* the extractor was told to put it aside when it takes long */
	uint32_t name_len;
	struct rowline *line;		      /* the line that it waits in, or NULL */
	struct rowqueue_request *prev, *next; /* list of the queue while it waits, later of the
					       * caller */
	char name[ROWQUEUE_NAME_MAX];
};

struct rowqueue {
	const struct tables *tables; /* borrowed */
	struct rowline *lines;
	unsigned count, held; /* number of requests, and of descriptors */
	/* Until then files of root come first: a user's file kept the extractor waiting. */
	uint64_t wary_until_ns;
};

/* Frees all requests. Accepts a zeroed queue. */
void rowqueue_done(struct rowqueue *q);
/* Adds a request, whose owner and fd are set. Returns false without memory. */
bool rowqueue_add(struct rowqueue *q, struct rowqueue_request *r);
/* Returns the next request, or NULL. idle: no other request is in flight. */
struct rowqueue_request *rowqueue_next(const struct rowqueue *q, bool idle, uint64_t now_ns);
/* Removes a request from the queue. */
void rowqueue_take(struct rowqueue *q, struct rowqueue_request *r);
/* Returns the request that waits for this slot, or NULL. */
struct rowqueue_request *rowqueue_find(const struct rowqueue *q, uint16_t slot, uint32_t serial);
/* Returns how many other owners have spent less than this one, who is about to spend ns, and have a
 * waiting file. If that was put aside, they must have spent less than half. */
unsigned rowqueue_poorer(const struct rowqueue *q, const struct owner *owner, uint64_t ns,
			 uint64_t now_ns);
/* Returns the least that an owner spent who has a waiting file that was not put aside; UINT64_MAX:
 * there is none. */
uint64_t rowqueue_least_spent(const struct rowqueue *q, uint64_t now_ns);
/* Moves a waiting request to another line. Returns false without memory; then it stays where it
 * is. */
bool rowqueue_move(struct rowqueue *q, struct rowqueue_request *r, struct owner *owner);
/* Guesses how much cpu time a request's file takes. */
uint64_t rowqueue_guess(const struct rowqueue_request *r);
/* Returns the part of the owner's cpu time that still counts; 0 for NULL. */
uint64_t rowqueue_spent(const struct owner *owner, uint64_t now_ns);
/* Frees a request and closes its descriptors. */
void rowqueue_request_free(struct rowqueue_request *r);

#endif
