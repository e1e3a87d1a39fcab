/* SPDX-License-Identifier: Apache-2.0 */
/* What a bus has to hand out, in the order it came: messages, and the comings and goings of peers
 * between them. A descriptor is readable while there is any. No call blocks; the caller locks. */
#ifndef PROFPIPE_ARRIVALS_H
#define PROFPIPE_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/wire/bus.h"

#define ARRIVALS_MESSAGES BUS_DEPTH /* the most that wait, which the caller sees to */
#define ARRIVALS_EVENTS 32

struct arrival {
	enum bus_event event; /* 0: a message */
	void *message;	      /* of malloc */
	uint64_t epoch;
};

struct arrivals {
	int fd; /* for poll */
	bool shown;
	unsigned first, messages, events; /* of these */
	struct arrival ring[ARRIVALS_MESSAGES + ARRIVALS_EVENTS];
};

/* 0, -errno. */
int arrivals_init(struct arrivals *a);
/* Frees what is left. */
void arrivals_done(struct arrivals *a);
/* Takes the message. */
void arrivals_put(struct arrivals *a, struct arrival what);
/* The oldest, which stays; borrowed until the next call. NULL: there is none. */
const struct arrival *arrivals_next(const struct arrivals *a);
/* The oldest: its message is the caller's. False: there is none. */
bool arrivals_take(struct arrivals *a, struct arrival *ret);
/* Frees the messages of an epoch. */
void arrivals_forget(struct arrivals *a, uint64_t epoch);
/* All is forgotten. */
void arrivals_clear(struct arrivals *a);

#endif
