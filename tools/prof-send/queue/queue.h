/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of one endpoint: requests that wait, the oldest first. It is bounded in bytes and in
 * number. A request always finds room: the oldest ones are dropped for it, and counted. With a
 * spool, requests wait there, and memory is only for those that the disk does not take.
 *
 * The queue counts the outcome of each request, for the endpoint.
 */
#ifndef PROF_SEND_QUEUE_QUEUE_H
#define PROF_SEND_QUEUE_QUEUE_H

#include <stdbool.h>
#include <sys/queue.h>
#include "tools/prof-send/queue/spool.h"

/* Why a request was lost. */
enum queue_loss {
	QUEUE_FULL,	   /* newer ones took its place in memory */
	QUEUE_SPOOL_FULL,  /* the same, in the spool */
	QUEUE_REFUSED,	   /* the receiver refused it for good */
	QUEUE_TOO_LARGE,   /* it is larger than anybody takes */
	QUEUE_DAMAGED,	   /* its file in the spool is torn or falsified, or it is not gzip */
	QUEUE_MEMORY,	   /* no memory for it */
	QUEUE_UNDELIVERED, /* prof-send ended before the receiver took it */
	QUEUE_LOSSES
};
/* "refused". Static storage. */
extern const char *const queue_losses[QUEUE_LOSSES];

struct queue_counts {
	uint64_t taken;		     /* requests that came, or were found in the spool */
	uint64_t delivered, partial; /* requests; partial ones are among those delivered */
	uint64_t samples;	     /* in the delivered ones */
	uint64_t rejected;	     /* profiles in the partial ones */
	uint64_t lost[QUEUE_LOSSES]; /* requests */
	uint64_t lost_samples;
	uint64_t retried; /* attempts that failed and are made again */
	uint64_t kept;	  /* requests that wait in the spool for the next prof-send */
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
	size_t len; /* bytes that it takes, in memory or in the spool */
};

struct queue {
	struct queue_limits limits;
	const struct spool *spool; /* borrowed; without a folder: none */
	uint64_t key, next_serial;
	TAILQ_HEAD(queue_entries, queue_entry) entries;
	bool busy; /* the first one is being sent */
	size_t count, memory;
	uint64_t spooled;  /* bytes */
	int spool_failure; /* -errno of the last write to the spool; 0: it worked */
	struct queue_counts counts;
};

/* key: the endpoint's. The queue stays where it is. */
void queue_init(struct queue *q, const struct queue_limits *limits, const struct spool *spool,
		uint64_t key);
void queue_done(struct queue *q);
/* Takes over what lies in the spool. 0, -errno; *ret tells what else was found, without entries. */
int queue_resume(struct queue *q, struct spool_found *ret);
/* Takes a request, of which it becomes another user. Never fails: what it drops is counted. */
void queue_put(struct queue *q, struct request *r);
/* Counts a request that could not even become one. */
void queue_lose(struct queue *q, enum queue_loss loss, uint64_t samples);
/* Begins to send the oldest: a request of which the caller becomes a user, or NULL if none waits.
 * Until queue_again or queue_take it is not dropped for newer ones. */
struct request *queue_begin(struct queue *q);
/* It was not delivered, and stays the oldest. */
void queue_again(struct queue *q);
/* It was delivered, with `rejected` profiles missing if partial. */
void queue_deliver(struct queue *q, bool partial, uint64_t rejected);
/* It is given up. */
void queue_give_up(struct queue *q, enum queue_loss loss);
bool queue_is_empty(const struct queue *q);
/* Whether the memory for requests is half used: senders that may wait should wait. */
bool queue_is_half_full(const struct queue *q);
/* Nothing more is sent: requests in memory count as lost, and those in the spool as kept. */
void queue_end(struct queue *q);
/* All lost requests. */
uint64_t queue_lost(const struct queue_counts *c);

#endif
