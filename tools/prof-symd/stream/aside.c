/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/aside.h"

#include <errno.h>
#include <stdlib.h>

void aside_done(struct aside *a)
{
	free(a->at);
	*a = (struct aside){ 0 };
}

int aside_add(struct aside *a, const struct event *e, uint64_t process)
{
	/* The end of a process must come behind its samples. */
	if (e->kind == EVENT_SAMPLE && a->len >= ASIDE_MAX)
		return -ENOBUFS;
	if (a->len == a->cap) {
		const size_t cap = a->cap ? a->cap * 2 : 64;
		struct aside_event *at = reallocarray(a->at, cap, sizeof(*at));

		if (!at)
			return -ENOMEM;
		a->at = at;
		a->cap = cap;
	}
	room_take(&a->room, e->owner, 1);
	a->at[a->len++] = (struct aside_event){ .event = *e, .process = process };
	return 0;
}

struct aside_event *aside_last(struct aside *a, uint64_t owner)
{
	uint64_t whose;

	if (!room_gives_way(&a->room, owner, &whose))
		return NULL;
	for (size_t i = a->len; i-- > 0;) {
		const struct aside_event *e = &a->at[i];

		if (e->process && e->event.kind == EVENT_SAMPLE && e->event.owner == whose)
			return &a->at[i];
	}
	return NULL;
}

void aside_replace(struct aside *a, struct aside_event *at, const struct event *e, uint64_t process)
{
	room_give(&a->room, at->event.owner, 1);
	room_take(&a->room, e->owner, 1);
	*at = (struct aside_event){ .event = *e, .process = process };
}

bool aside_has(const struct aside *a, uint64_t process)
{
	for (size_t i = 0; i < a->len; i++)
		if (a->at[i].process == process)
			return true;
	return false;
}

void aside_sweep(struct aside *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->len; i++)
		if (a->at[i].process)
			a->at[n++] = a->at[i];
		else
			room_give(&a->room, a->at[i].event.owner, 1);
	a->len = n;
	if (n == 0)
		aside_done(a);
}
