/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/owners/shares.h"

#include "common/base/bytes/numbers.h"
#include "common/base/shares/fairshare.h"

#define RESERVE_PART 4
#define RESERVE_MOST (2u << 20)
#define TAKE_PART 8 /* an owner may take one in this many of the remaining bytes */
#define COUNT_PART 4

size_t shares_reserve(size_t max)
{
	return numbers_smaller(max / RESERVE_PART, RESERVE_MOST);
}

struct share *shares_get(struct shares *s, uint64_t owner)
{
	uint32_t i = s->last;

	/* Usually the same owner as before. */
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

static size_t fair_share(const struct shares *s, const struct share *taker)
{
	struct fairshare f = { .taker = 1 };

	for (uint32_t i = 0; i <= SHARES_OWNERS; i++)
		f.all += held(&s->at[i]);
	do
		for (uint32_t i = 0; i <= SHARES_OWNERS; i++)
			if (&s->at[i] != taker)
				fairshare_show(&f, held(&s->at[i]));
	while (fairshare_grows(&f));
	return f.share;
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
