/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/aside.h"

#include <errno.h>
#include <stdlib.h>

void aside_done(struct aside *a)
{
	free(a->at);
	*a = (struct aside){ 0 };
}

static bool has_room(const struct aside *a, uint64_t owner)
{
	size_t own = 0;

	if (a->len < ASIDE_MAX / 32)
		return true;
	for (size_t i = 0; i < a->len; i++)
		own += a->at[i].event.owner == owner;
	return own < (ASIDE_MAX - (a->len - own)) / 2;
}

int aside_add(struct aside *a, const struct event *e, uint64_t process)
{
	/* The end of a process must come behind its samples. */
	if (e->kind == EVENT_SAMPLE && !has_room(a, e->owner))
		return -ENOBUFS;
	if (a->len == a->cap) {
		const size_t cap = a->cap ? a->cap * 2 : 64;
		struct aside_event *at = reallocarray(a->at, cap, sizeof(*at));

		if (!at)
			return -ENOMEM;
		a->at = at;
		a->cap = cap;
	}
	a->at[a->len++] = (struct aside_event){ .event = *e, .process = process };
	return 0;
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
	a->len = n;
	if (n == 0)
		aside_done(a);
}
