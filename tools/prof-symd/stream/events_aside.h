/* SPDX-License-Identifier: Apache-2.0 */
/* Events that were put aside because their owner's turn is over (naming_turns.h): samples, and the
 * ends of processes with such samples. They are in the order in which they came, and are limited in
 * number. */
#ifndef PROF_SYMD_STREAM_EVENTS_ASIDE_H
#define PROF_SYMD_STREAM_EVENTS_ASIDE_H

#include "common/base/shares/holdings.h"
#include "tools/prof-symd/stream/events.h"

#define EVENTS_ASIDE_MAX (16u << 10)

struct events_aside_entry {
	struct event event;
	uint64_t process; /* process of the sample; 0: this entry will be swept */
};

/* Zero-initialise. */
struct events_aside {
	struct events_aside_entry *at; /* [0, len), the oldest first */
	size_t len, cap;
	struct holdings held_by;
};

void events_aside_done(struct events_aside *a);
/* Adds an event. Returns 0, -ENOMEM, or -ENOBUFS at the limit, which only applies to samples. */
int events_aside_add(struct events_aside *a, const struct event *e, uint64_t process);
/* At the limit: returns the last sample of the owner who must give up a place to this one, or
 * NULL. */
struct events_aside_entry *events_aside_last(struct events_aside *a, uint64_t owner);
/* Replaces one sample with another. */
void events_aside_replace(struct events_aside *a, struct events_aside_entry *at,
			  const struct event *e, uint64_t process);
/* Whether there is an event of this process. */
bool events_aside_has(const struct events_aside *a, uint64_t process);
/* Removes events whose process the caller set to 0. */
void events_aside_sweep(struct events_aside *a);

#endif
