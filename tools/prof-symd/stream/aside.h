/* SPDX-License-Identifier: Apache-2.0 */
/* Events that were put aside because their owner's turn is over (turns.h): samples, and the ends of
 * processes with such samples. They are in the order in which they came, and have a ceiling. */
#ifndef PROF_SYMD_STREAM_ASIDE_H
#define PROF_SYMD_STREAM_ASIDE_H

#include "tools/prof-symd/stream/events.h"
#include "common/base/room.h"

#define ASIDE_MAX (16u << 10)

struct aside_event {
	struct event event;
	uint64_t process; /* of the sample; 0: this place is to be swept */
};

/* Zero-initialise. */
struct aside {
	struct aside_event *at; /* [0, len), the oldest first */
	size_t len, cap;
	struct room room;
};

void aside_done(struct aside *a);
/* 0, -ENOBUFS at the ceiling, which holds for samples only, -ENOMEM. */
int aside_add(struct aside *a, const struct event *e, uint64_t process);
/* At the ceiling: the last sample of the owner who gives way to this one, or NULL. */
struct aside_event *aside_last(struct aside *a, uint64_t owner);
/* Puts a sample into the place of another one. */
void aside_replace(struct aside *a, struct aside_event *at, const struct event *e,
		   uint64_t process);
/* Whether an event of this process is there. */
bool aside_has(const struct aside *a, uint64_t process);
/* Removes events whose process the caller set to 0. */
void aside_sweep(struct aside *a);

#endif
