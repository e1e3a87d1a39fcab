/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of events, in the order of the stream, that wait to be sent. Events are all messages that
 * are not definitions: samples, losses, figures and so on. */
#ifndef PROF_SYMD_STREAM_EVENTS_H
#define PROF_SYMD_STREAM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include "common/wire/msg.h"

enum event_kind {
	EVENT_SAMPLE,
	EVENT_LOST,
	EVENT_CLOCK,
	EVENT_FIGURE,
	EVENT_PROCESS_END,
	EVENT_THREAD_END,
	EVENT_FILE_END,
	EVENT_END
};

struct event {
	enum event_kind kind;
	uint64_t owner; /* owner of a sample's process (naming_turns.h) */
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
		struct msg_thread_end thread_end;
		struct msg_file_end file_end;
		struct msg_end end;
	};
};

/* Makes an event from a message. Returns false if the message is not an event. */
bool event_of(const struct msg *m, struct event *ret);

struct events {
	struct event *ring; /* owned */
	size_t first, len, max;
};

/* Returns 0 or -ENOMEM. */
int events_init(struct events *q, size_t max);
void events_done(struct events *q);
bool events_full(const struct events *q);
/* Appends a copy. Returns false if the queue is full. */
bool events_push(struct events *q, const struct event *e);
/* Returns the oldest event, which stays in the queue; NULL: none. */
const struct event *events_head(const struct events *q);
/* Returns the event that i others precede, which stays in the queue; NULL: none. */
const struct event *events_at(const struct events *q, size_t i);
void events_pop(struct events *q);

#endif
