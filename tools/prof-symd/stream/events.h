/* SPDX-License-Identifier: Apache-2.0 */
/* What a stream says beside its definitions, in its order, until it can be sent on. */
#ifndef PROFPIPE_EVENTS_H
#define PROFPIPE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include "common/wire/msg.h"

enum event_kind {
	EVENT_SAMPLE,
	EVENT_LOST,
	EVENT_CLOCK,
	EVENT_FIGURE,
	EVENT_PROCESS_END,
	EVENT_END
};

struct event {
	enum event_kind kind;
	union {
		struct msg_sample sample;
		struct msg_lost lost;
		struct msg_clock clock;
		struct {
			uint64_t value;
			uint32_t len;
			char name[64];
		} figure;
		struct msg_process_end process_end;
		struct msg_end end;
	};
};

/* What a message says; nothing of it is borrowed. False: it is no event. */
bool event_of(const struct msg *m, struct event *ret);

struct events {
	struct event *ring; /* owned */
	size_t first, len, max;
};

/* 0, -ENOMEM. */
int events_init(struct events *q, size_t max);
void events_done(struct events *q);
bool events_full(const struct events *q);
/* False: it is full. */
bool events_push(struct events *q, const struct event *e);
/* The oldest, until it is popped; NULL: there is none. */
const struct event *events_head(const struct events *q);
void events_pop(struct events *q);

#endif
