/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/events_aside.h"

#include <errno.h>
#include <stdlib.h>

void events_aside_done(struct events_aside *a)
{
	free(a->at);
	*a = (struct events_aside){ 0 };
}

int events_aside_add(struct events_aside *a, const struct event *e, uint64_t process)
{
	/* Only samples are limited: the end of a process must come after its samples. */
	if (e->kind == EVENT_SAMPLE && a->len >= EVENTS_ASIDE_MAX)
		return -ENOBUFS;
	if (a->len == a->cap) {
		const size_t cap = a->cap ? a->cap * 2 : 64;
		struct events_aside_entry *at = reallocarray(a->at, cap, sizeof(*at));

		if (!at)
			return -ENOMEM;
		a->at = at;
		a->cap = cap;
	}
	holdings_take(&a->held_by, e->owner, 1);
	a->at[a->len++] = (struct events_aside_entry){ .event = *e, .process = process };
	return 0;
}

struct events_aside_entry *events_aside_last(struct events_aside *a, uint64_t owner)
{
	uint64_t whose;

	if (!holdings_gives_way(&a->held_by, owner, &whose))
		return NULL;
	for (size_t i = a->len; i-- > 0;) {
		const struct events_aside_entry *e = &a->at[i];

		if (e->process && e->event.kind == EVENT_SAMPLE && e->event.owner == whose)
			return &a->at[i];
	}
	return NULL;
}

void events_aside_replace(struct events_aside *a, struct events_aside_entry *at,
			  const struct event *e, uint64_t process)
{
	holdings_give(&a->held_by, at->event.owner, 1);
	holdings_take(&a->held_by, e->owner, 1);
	*at = (struct events_aside_entry){ .event = *e, .process = process };
}

bool events_aside_has(const struct events_aside *a, uint64_t process)
{
	for (size_t i = 0; i < a->len; i++)
		if (a->at[i].process == process)
			return true;
	return false;
}

void events_aside_sweep(struct events_aside *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->len; i++)
		if (a->at[i].process)
			a->at[n++] = a->at[i];
		else
			holdings_give(&a->held_by, a->at[i].event.owner, 1);
	a->len = n;
	if (n == 0)
		events_aside_done(a);
}
