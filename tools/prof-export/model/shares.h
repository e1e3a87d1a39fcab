/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of the model's memory that each owner's definitions take (docs/fairness.md). While
 * there is plenty, nobody is bounded. The last quarter, or 2 MiB if that is less, is the reserve
 * (pool.h). From there each owner may take an eighth of what is left, and a quarter for what counts
 * its samples. For new stacks it must also hold less than the fair share (fairshare.h) of what all
 * hold.
 *
 * Costs are what the definitions need, without the room of arrays to grow.
 */
#ifndef PROF_EXPORT_MODEL_SHARES_H
#define PROF_EXPORT_MODEL_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/prof-export/model/pool.h"

#define SHARES_OWNERS 255 /* further ones share a place */

struct share {
	uint64_t owner;	    /* as `owner` of a process in the stream */
	size_t kept;	    /* bytes of definitions */
	size_t epoch;	    /* bytes of ids of this epoch */
	size_t taken;	    /* from the reserve, of what is kept */
	size_t taken_epoch; /* likewise, in this epoch */
	bool refused;	    /* in this epoch it did not get something */
	uint64_t samples;   /* counted */
	uint64_t folded;    /* of these, in the stack of all that did not fit */
	uint64_t lost;	    /* samples for which there was no room at all */
};

struct shares {
	struct share at[SHARES_OWNERS + 1];
	uint32_t len; /* of at; the place behind them is that of all others */
	uint32_t last;
};

/* The reserve of a pool with this ceiling. */
size_t shares_reserve(size_t max);
/* The owner's share, forever. */
struct share *shares_get(struct shares *s, uint64_t owner);
enum share_use { SHARE_STACK, SHARE_DEFINITION, SHARE_COUNT };

/* Whether the owner may take from the reserve of the pool for this use. */
bool shares_may_take(const struct shares *s, const struct share *w, const struct pool *p,
		     enum share_use use);
/* The owner took this much. */
void shares_take(struct share *w, const struct pool *p, size_t kept, size_t epoch);
/* The ids of the epoch are gone. `all` also resets definitions. */
void shares_forget(struct shares *s, bool all);

#endif
