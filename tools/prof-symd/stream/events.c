/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct event figure_of(const struct msg_figure *m)
{
	struct event e = { .kind = EVENT_FIGURE };
	const struct str name = str_cut(m->name, sizeof(e.figure.name));

	e.figure.value = m->value;
	e.figure.len = name.len;
	if (name.len)
		memcpy(e.figure.name, name.data, name.len);
	return e;
}

bool event_of(const struct msg *m, struct event *ret)
{
	switch (m->id) {
	case MSG_SAMPLE:
		*ret = (struct event){ .kind = EVENT_SAMPLE, .sample = m->sample };
		return true;
	case MSG_LOST:
		*ret = (struct event){ .kind = EVENT_LOST, .lost = m->lost };
		return true;
	case MSG_CLOCK:
		*ret = (struct event){ .kind = EVENT_CLOCK, .clock = m->clock };
		return true;
	case MSG_FIGURE:
		*ret = figure_of(&m->figure);
		return true;
	case MSG_PROCESS_END:
		*ret = (struct event){ .kind = EVENT_PROCESS_END, .process_end = m->process_end };
		return true;
	case MSG_THREAD_END:
		*ret = (struct event){ .kind = EVENT_THREAD_END, .thread_end = m->thread_end };
		return true;
	case MSG_FILE_END:
		*ret = (struct event){ .kind = EVENT_FILE_END, .file_end = m->file_end };
		return true;
	case MSG_END:
		*ret = (struct event){ .kind = EVENT_END, .end = m->end };
		return true;
	default:
		return false;
	}
}

int events_init(struct events *q, size_t max)
{
	*q = (struct events){ .ring = calloc(max, sizeof(*q->ring)), .max = max };
	return q->ring ? 0 : -ENOMEM;
}

void events_done(struct events *q)
{
	free(q->ring);
	*q = (struct events){ 0 };
}

bool events_full(const struct events *q)
{
	return q->len == q->max;
}

bool events_push(struct events *q, const struct event *e)
{
	if (events_full(q))
		return false;
	q->ring[(q->first + q->len++) % q->max] = *e;
	return true;
}

const struct event *events_at(const struct events *q, size_t i)
{
	return i < q->len ? &q->ring[(q->first + i) % q->max] : NULL;
}

const struct event *events_head(const struct events *q)
{
	return events_at(q, 0);
}

void events_pop(struct events *q)
{
	/* If the queue is empty, begin at the front again, whose pages are in memory. */
	q->first = --q->len ? (q->first + 1) % q->max : 0;
}
