/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include "tools/prof-symd/stream/held_samples.h"

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
	h->at[h->len++] = *s;
	return 0;
}

void held_samples_sweep(struct held_samples *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->len; i++)
		if (h->at[i].process)
			h->at[n++] = h->at[i];
	h->len = n;
	if (n == 0)
		held_samples_done(h);
}
