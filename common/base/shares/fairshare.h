/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fair share of a scarce resource: the amount that each owner may have. Owners that hold less
 * than the share leave the rest to the others. A taker wants more than it holds, so the amount that
 * it holds now does not count. If there is no taker and nobody holds more than the share, the share
 * is everything.
 *
 * The share is computed in several passes over all owners but the taker; it grows from pass to
 * pass. Owners that hold nothing can be skipped:
 *
 *   struct fairshare f = { .all = all, .taker = 1 };
 *
 *   do
 *           for (...)
 *                   fairshare_show(&f, held by this owner);
 *   while (fairshare_grows(&f));
 *   return f.share;
 *
 * Pure.
 */
#ifndef COMMON_BASE_SHARES_FAIRSHARE_H
#define COMMON_BASE_SHARES_FAIRSHARE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/bytes/numbers.h"

struct fairshare {
	uint64_t all;	/* set by the caller */
	uint64_t taker; /* set by the caller. 1: there is a taker; 0: there are only holders */
	uint64_t share;
	/* In this pass: the sum that owners below the share hold, and the number of other
	 * owners. */
	uint64_t given, among;
};

static inline void fairshare_show(struct fairshare *f, uint64_t held)
{
	if (held > f->share)
		f->among++;
	else
		f->given += numbers_smaller(held, f->all - f->given);
}

/* Ends a pass. Returns false once the share is final. */
static inline bool fairshare_grows(struct fairshare *f)
{
	const uint64_t among = f->among + f->taker, left = f->all - f->given,
		       next = among ? left / among : f->all;
	const bool grows = next > f->share;

	f->share = numbers_larger(next, f->share);
	f->given = f->among = 0;
	return grows && among;
}

#endif
