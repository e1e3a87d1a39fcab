/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/held_samples.h"

#include <errno.h>
#include <stdlib.h>

void held_samples_done(struct held_samples *h)
{
	free(h->at);
	*h = (struct held_samples){ 0 };
}

int held_samples_add(struct held_samples *h, const struct held_sample *s)
{
	if (h->len == HELD_SAMPLES_MAX)
		return -ENOBUFS;
	if (h->len == h->cap) {
		size_t cap = h->cap ? h->cap * 2 : 64;
		struct held_sample *at = reallocarray(h->at, cap, sizeof(*at));

		if (!at)
			return -ENOMEM;
		h->at = at;
		h->cap = cap;
	}
	holdings_take(&h->held_by, s->owner, 1);
	h->at[h->len++] = *s;
	return 0;
}

struct held_sample *held_samples_last(struct held_samples *h, uint64_t owner)
{
	uint64_t whose;

	if (!holdings_gives_way(&h->held_by, owner, &whose))
		return NULL;
	for (size_t i = h->len; i-- > 0;)
		if (h->at[i].process && h->at[i].owner == whose)
			return &h->at[i];
	return NULL;
}

void held_samples_replace(struct held_samples *h, struct held_sample *at,
			  const struct held_sample *s)
{
	holdings_give(&h->held_by, at->owner, 1);
	holdings_take(&h->held_by, s->owner, 1);
	*at = *s;
}

void held_samples_sweep(struct held_samples *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->len; i++)
		if (h->at[i].process)
			h->at[n++] = h->at[i];
		else
			holdings_give(&h->held_by, h->at[i].owner, 1);
	h->len = n;
	if (n == 0)
		held_samples_done(h);
}
