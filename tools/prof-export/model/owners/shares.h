/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of the model's memory that each owner's definitions take (docs/fairness.md). While
 * memory is plentiful, no owner is limited. The last quarter of the memory, at most 2 MiB, is the
 * reserve (pool.h). Of the reserve, each owner may take an eighth of what is left; for the counts
 * of its samples, a quarter. New stacks also require that the owner holds less than the fair share
 * (fairshare.h) of all definitions.
 *
 * Costs are what the definitions need, without the spare room of arrays.
 */
#ifndef PROF_EXPORT_MODEL_OWNERS_SHARES_H
#define PROF_EXPORT_MODEL_OWNERS_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/prof-export/model/definitions/pool.h"

#define SHARES_OWNERS 255 /* further owners share one place */

struct share {
	uint64_t owner;	    /* as `owner` of a process in the stream */
	size_t kept;	    /* bytes of definitions */
	size_t epoch;	    /* bytes of ids in this epoch */
	size_t taken;	    /* bytes of `kept` that came from the reserve */
	size_t taken_epoch; /* the same for `epoch` */
	bool refused;	    /* in this epoch, something for this owner did not fit */
	uint64_t samples;   /* samples that were counted */
	uint64_t folded;    /* of these, samples counted without their own stack */
	uint64_t lost;	    /* samples that were lost for lack of room */
};

struct shares {
	struct share at[SHARES_OWNERS + 1];
	uint32_t len; /* of at; the place at index len is for all other owners */
	uint32_t last;
};

/* The reserve of a pool with this ceiling. */
size_t shares_reserve(size_t max);
/* Returns the owner's share, which is never removed. */
struct share *shares_get(struct shares *s, uint64_t owner);
enum share_use { SHARE_STACK, SHARE_DEFINITION, SHARE_COUNT };

/* Whether the owner may use the reserve of the pool for this. */
bool shares_may_take(const struct shares *s, const struct share *w, const struct pool *p,
		     enum share_use use);
/* Charges to the owner what was added. */
void shares_take(struct share *w, const struct pool *p, size_t kept, size_t epoch);
/* The ids of the epoch have ended. `all` also resets definitions. */
void shares_forget(struct shares *s, bool all);

#endif
