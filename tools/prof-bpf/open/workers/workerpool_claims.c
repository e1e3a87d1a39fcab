/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "common/base/tables/blockers.h"
#include "tools/prof-bpf/open/workers/workerpool_internal.h"

#define SAFE_OF_OWNER 3 /* hanging workers of the safe lane that one owner may have */

void workerpool_claims_charge(struct workerpool *pool, struct owner *w, enum owner_resource t)
{
	if (pool->owners && w)
		owner_hold(pool->owners, w, t, 1);
}

void workerpool_claims_release(struct workerpool *pool, struct owner *w, enum owner_resource t)
{
	if (pool->owners && w)
		owner_release(pool->owners, w, t, 1);
}

bool workerpool_claims_is_busy(const struct workerpool_worker *w)
{
	return w->fd >= 0 && (w->hung || w->closing || w->count);
}

bool workerpool_claims_is_slow(const struct workerpool *pool, const struct workerpool_worker *w)
{
	return w->slow && !w->hung && workerpool_claims_is_busy(w) &&
	       pool->now_ns > w->since_ns + WORKERPOOL_SLOW_NS;
}

/* Whether both are probably one user. A user may own a block of subordinate ids, and be an owner
 * under each of them. */
static bool is_same_user(const struct owner *a, const struct owner *b)
{
	return a == b ||
	       (a && b && a->key.container == b->key.container && a->key.uid != b->key.uid &&
		blockers_user(a->key.uid) == blockers_user(b->key.uid));
}

static bool shares_device(const struct workerpool_claim *claim, const struct workerpool_job *j)
{
	/* Device 0: not known yet. */
	for (unsigned i = 0; i < claim->dev_count; i++)
		for (unsigned k = 0; k < j->dev_count; k++)
			if (claim->devs[i] && claim->devs[i] == j->devs[k])
				return true;
	return false;
}

static bool is_same_lane(const struct workerpool_claim *claim, const struct workerpool_job *j)
{
	return (claim->lane == WORKERPOOL_SAFE) == (j->lane == WORKERPOOL_SAFE);
}

/* Whether a job asks what is claimed: the same foreign device or process; in the safe lane the same
 * device, for the same owner. */
static bool is_same_thing(const struct workerpool_claim *claim, const struct workerpool_job *j)
{
	if (claim->lane != j->lane)
		return false;
	if (j->lane == WORKERPOOL_MEMORY)
		return claim->pid == j->pid;
	return (j->lane == WORKERPOOL_FOREIGN || claim->owner == j->owner) &&
	       shares_device(claim, j);
}

enum workerpool_claims_may workerpool_claims_may_begin(const struct workerpool *pool,
						       const struct workerpool_job *j)
{
	const bool safe = j->lane == WORKERPOOL_SAFE;
	const unsigned most_hung = safe ? WORKERPOOL_SAFE_HANGING : WORKERPOOL_SLOW_HANGING;
	unsigned busy = 0, hung = 0, all_busy = 0, all_slow = 0, all_hung = 0;
	bool waits = false;

	for (unsigned i = 0; i < WORKERPOOL_PENALTIES; i++) {
		const struct workerpool_penalty *p = &pool->penalties[i];

		if (p->until_ns <= pool->now_ns)
			continue;
		if (is_same_thing(&p->claim, j))
			return WORKERPOOL_CLAIMS_MAY_NEVER;
		hung += is_same_lane(&p->claim, j) && is_same_user(p->claim.owner, j->owner);
	}
	for (unsigned i = 0; i < WORKERPOOL_WORKERS; i++) {
		const struct workerpool_worker *w = &pool->workers[i];

		if (!workerpool_claims_is_busy(w))
			continue;
		const bool same_lane = is_same_lane(&w->claim, j),
			   same = is_same_thing(&w->claim, j);

		if (same && w->hung)
			return WORKERPOOL_CLAIMS_MAY_NEVER;
		waits |= same;
		if (w->claim.lane == j->lane) {
			const bool slow = workerpool_claims_is_slow(pool, w);

			all_hung += w->hung;
			all_slow += slow;
			all_busy += !w->hung && !slow;
		}
		if (same_lane && is_same_user(w->claim.owner, j->owner)) {
			hung += w->hung && !w->penalized;
			busy++;
		}
	}
	const unsigned of_owner = all_hung + all_slow >= most_hung / 2 ? 1
				  : safe			       ? SAFE_OF_OWNER
								       : WORKERPOOL_OF_OWNER;

	if ((j->owner && hung >= of_owner) || all_hung >= most_hung + (hung ? 0 : WORKERPOOL_SPARE))
		return WORKERPOOL_CLAIMS_MAY_NEVER;
	if (safe)
		return WORKERPOOL_CLAIMS_MAY_BEGIN;
	return waits || all_busy >= WORKERPOOL_OF_LANE ||
			       (all_slow && all_hung + all_slow >= most_hung) ||
			       (j->owner && busy >= of_owner)
		       ? WORKERPOOL_CLAIMS_MAY_WAIT
		       : WORKERPOOL_CLAIMS_MAY_BEGIN;
}

void workerpool_claims_take(struct workerpool *pool, struct workerpool_worker *w,
			    const struct workerpool_job *j)
{
	w->claim = (struct workerpool_claim){
		.lane = j->lane, .owner = j->owner, .dev_count = j->dev_count, .pid = j->pid
	};
	memcpy(w->claim.devs, j->devs, sizeof(j->devs));
	if (pool->owners && w->claim.owner)
		owner_get(w->claim.owner);
	w->charged = w->slow;
	if (w->charged)
		workerpool_claims_charge(pool, w->claim.owner, OWNER_OPENERS);
}

void workerpool_claims_drop(struct workerpool *pool, struct workerpool_worker *w)
{
	if (w->charged)
		workerpool_claims_release(pool, w->claim.owner, OWNER_OPENERS);
	w->charged = false;
	if (pool->owners && w->claim.owner)
		owner_put(pool->owners, w->claim.owner);
	w->claim = (struct workerpool_claim){ .owner = NULL };
}

void workerpool_claims_forgive(struct workerpool *pool, struct workerpool_penalty *p)
{
	if (pool->owners && p->claim.owner)
		owner_put(pool->owners, p->claim.owner);
	*p = (struct workerpool_penalty){ .until_ns = 0 };
}

void workerpool_claims_penalize(struct workerpool *pool, const struct workerpool_claim *claim)
{
	struct workerpool_penalty *p =
		&pool->penalties[pool->next_penalty++ % WORKERPOOL_PENALTIES];

	workerpool_claims_forgive(pool, p);
	*p = (struct workerpool_penalty){ .claim = *claim,
					  .until_ns = pool->now_ns + WORKERPOOL_PENALTY_NS };
	if (pool->owners && p->claim.owner)
		owner_get(p->claim.owner);
}
