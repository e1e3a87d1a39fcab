/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals: the events that a bus passes to its user: messages, and peers that came or went. A
 * descriptor is readable while there are any. No call blocks. The caller must hold a lock. */
#ifndef COMMON_WIRE_BUS_ARRIVALS_H
#define COMMON_WIRE_BUS_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/wire/bus/busroute.h"

#define ARRIVALS_MESSAGES BUSROUTE_DEPTH /* the caller allows no more to wait */
#define ARRIVALS_EVENTS 32

struct arrival {
	int event;     /* of bus_recv (enum bus_event); 0: this is a message */
	void *message; /* allocated by malloc */
	uint64_t epoch;
};

struct arrivals {
	int fd; /* for poll */
	bool shown;
	/* First: index of the oldest; the others: how many are in the ring. */
	unsigned first, messages, events;
	struct arrival ring[ARRIVALS_MESSAGES + ARRIVALS_EVENTS];
};

/* 0, -errno. */
int arrivals_init(struct arrivals *a);
/* Frees the arrivals that are left. */
void arrivals_done(struct arrivals *a);
/* Takes what.message. */
void arrivals_put(struct arrivals *a, struct arrival what);
/* Returns the oldest arrival, borrowed until the next call. NULL: there is none. */
const struct arrival *arrivals_next(const struct arrivals *a);
/* Removes the oldest arrival; the caller gets its message. Returns false if there is none. */
bool arrivals_take(struct arrivals *a, struct arrival *ret);
/* Drops the messages of an epoch, but keeps the events. */
void arrivals_forget(struct arrivals *a, uint64_t epoch);
/* Frees everything. */
void arrivals_clear(struct arrivals *a);

#endif
