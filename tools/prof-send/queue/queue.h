/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of one endpoint: waiting requests, the oldest first. Its size in bytes and in requests
 * is limited. A new request always gets room: the oldest ones are dropped and counted. With a
 * spool, requests wait there; memory holds only those that cannot be written to disk.
 *
 * The queue counts the outcome of each request for its endpoint.
 */
#ifndef PROF_SEND_QUEUE_QUEUE_H
#define PROF_SEND_QUEUE_QUEUE_H

#include <stdbool.h>
#include <sys/queue.h>
#include "tools/prof-send/queue/spool.h"

/* Why a request was lost. */
enum queue_loss {
	QUEUE_FULL,	   /* dropped from memory for newer ones */
	QUEUE_SPOOL_FULL,  /* dropped from the spool for newer ones */
	QUEUE_REFUSED,	   /* the receiver refused it for good */
	QUEUE_TOO_LARGE,   /* larger than any receiver accepts */
	QUEUE_DAMAGED,	   /* its file in the spool is torn or forged, or does not contain gzip */
	QUEUE_MEMORY,	   /* no memory for it */
	QUEUE_UNDELIVERED, /* prof-send ended before the receiver took it */
	QUEUE_LOSSES
};
/* "refused". Static storage. */
extern const char *const queue_losses[QUEUE_LOSSES];

struct queue_counts {
	uint64_t taken;		     /* requests that came or were found in the spool */
	uint64_t delivered, partial; /* requests; the partial ones are among those delivered */
	uint64_t samples;	     /* samples in the delivered requests */
	uint64_t rejected;	     /* profiles in the partial requests */
	uint64_t lost[QUEUE_LOSSES]; /* requests, by reason */
	uint64_t lost_samples;
	uint64_t retried; /* failed attempts that are repeated */
	uint64_t kept;	  /* requests that stay in the spool for the next prof-send */
};

struct queue_limits {
	size_t memory_max;  /* bytes of requests in memory */
	unsigned count_max; /* requests, in memory and in the spool */
	uint64_t spool_max; /* bytes of files */
};

struct queue_entry {
	TAILQ_ENTRY(queue_entry) link;
	struct request *request; /* NULL: in the spool */
	uint64_t serial;
	uint64_t samples;
	size_t len; /* size in bytes, in memory or in the spool */
};

struct queue {
	struct queue_limits limits;
	const struct spool *spool; /* borrowed; if it has no folder, there is no spool */
	uint64_t key, next_serial;
	TAILQ_HEAD(queue_entries, queue_entry) entries;
	bool busy; /* the first request is being sent */
	size_t count, memory;
	uint64_t spooled;  /* bytes in the spool */
	int spool_failure; /* -errno of the last write to the spool; 0: it worked */
	struct queue_counts counts;
};

/* key: that of the endpoint. The queue must not be moved afterwards. */
void queue_init(struct queue *q, const struct queue_limits *limits, const struct spool *spool,
		uint64_t key);
void queue_done(struct queue *q);
/* Takes over the requests in the spool. Returns 0 or -errno; *ret says what else was found, without
 * entries. */
int queue_resume(struct queue *q, struct spool_found *ret);
/* Adds a request, of which the queue becomes another user. Never fails: dropped requests are
 * counted. */
void queue_put(struct queue *q, struct request *r);
/* Counts a lost request that was never added. */
void queue_lose(struct queue *q, enum queue_loss loss, uint64_t samples);
/* Begins to send the oldest request. Returns it, and the caller becomes a user of it; NULL if none
 * waits. It is not dropped for newer ones until queue_again, queue_deliver or
 * queue_give_up. */
struct request *queue_begin(struct queue *q);
/* The request was not delivered, and remains the oldest. */
void queue_again(struct queue *q);
/* The request was delivered; if partial, the receiver rejected `rejected` profiles. */
void queue_deliver(struct queue *q, bool partial, uint64_t rejected);
/* The request is lost for this reason. */
void queue_give_up(struct queue *q, enum queue_loss loss);
bool queue_is_empty(const struct queue *q);
/* Whether half of the room for requests is used. Senders that can wait should then wait. */
bool queue_is_half_full(const struct queue *q);
/* Nothing more is sent: requests in memory count as lost, those in the spool as kept. */
void queue_end(struct queue *q);
/* The number of lost requests, for all reasons. */
uint64_t queue_lost(const struct queue_counts *c);

#endif
