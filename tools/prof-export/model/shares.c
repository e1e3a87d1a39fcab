/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/shares.h"

#define RESERVE_PART 4
#define RESERVE_MOST (2u << 20)
#define TAKE_PART 8 /* of what is left, for one owner */
#define COUNT_PART 4

size_t shares_reserve(size_t max)
{
	return max / RESERVE_PART < RESERVE_MOST ? max / RESERVE_PART : RESERVE_MOST;
}

struct share *shares_get(struct shares *s, uint64_t owner)
{
	uint32_t i = s->last;

	/* Most often the same one as before. */
	if (i < s->len && s->at[i].owner == owner)
		return &s->at[i];
	for (i = 0; i < s->len && s->at[i].owner != owner;)
		i++;
	if (i == s->len && s->len < SHARES_OWNERS)
		s->at[s->len++].owner = owner;
	s->last = i;
	return &s->at[i];
}

static size_t held(const struct share *w)
{
	return w->kept + w->epoch;
}

/* Gives away the shares of all who hold less than an equal one, until nobody does. The taker wants
 * more than it has. */
static size_t fair_share(const struct shares *s, const struct share *taker)
{
	size_t all = 0, share = 0;

	for (uint32_t i = 0; i <= SHARES_OWNERS; i++)
		all += held(&s->at[i]);
	for (;;) {
		size_t left = all, among = 1;

		for (uint32_t i = 0; i <= SHARES_OWNERS; i++) {
			const struct share *w = &s->at[i];

			if (w == taker)
				continue;
			if (held(w) > share)
				among++;
			else
				left -= held(w);
		}
		if (left / among <= share)
			return share;
		share = left / among;
	}
}

bool shares_may_take(const struct shares *s, const struct share *w, const struct pool *p,
		     enum share_use use)
{
	const size_t left = p->max > p->used ? p->max - p->used : 0,
		     most = left / (use == SHARE_COUNT ? COUNT_PART : TAKE_PART);

	return w->taken + w->taken_epoch < most &&
	       (use != SHARE_STACK || held(w) < fair_share(s, w));
}

void shares_take(struct share *w, const struct pool *p, size_t kept, size_t epoch)
{
	w->kept += kept;
	w->epoch += epoch;
	if (pool_is_scarce(p)) {
		w->taken += kept;
		w->taken_epoch += epoch;
	}
}

void shares_forget(struct shares *s, bool all)
{
	for (uint32_t i = 0; i <= SHARES_OWNERS; i++) {
		struct share *w = &s->at[i];

		w->epoch = w->taken_epoch = 0;
		w->refused = false;
		if (all)
			w->kept = w->taken = 0;
	}
}
