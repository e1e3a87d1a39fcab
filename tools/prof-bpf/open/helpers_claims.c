/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "tools/prof-bpf/open/helpers_internal.h"

#define SAFE_OF_OWNER 3 /* hanging workers of the safe lane */

void claims_charge(struct helpers *h, struct owner *w, enum owner_resource t)
{
	if (h->owners && w)
		owner_hold(h->owners, w, t, 1);
}

void claims_release(struct helpers *h, struct owner *w, enum owner_resource t)
{
	if (h->owners && w)
		owner_release(h->owners, w, t, 1);
}

bool claims_is_busy(const struct helpers_worker *w)
{
	return w->fd >= 0 && (w->hung || w->closing || w->count);
}

static bool shares_device(const struct helpers_claim *claim, const struct helpers_job *j)
{
	for (unsigned i = 0; i < claim->dev_count; i++)
		for (unsigned k = 0; k < j->dev_count; k++)
			if (claim->devs[i] == j->devs[k])
				return true;
	return false;
}

static bool is_same_lane(const struct helpers_claim *claim, const struct helpers_job *j)
{
	return (claim->lane == HELPERS_SAFE) == (j->lane == HELPERS_SAFE);
}

/* Whether a job is for what is claimed: a foreign device, a process; in the safe lane a device, for
 * the same owner. */
static bool is_same_thing(const struct helpers_claim *claim, const struct helpers_job *j)
{
	if (claim->lane != j->lane)
		return false;
	if (j->lane == HELPERS_MEMORY)
		return claim->pid == j->pid;
	return (j->lane == HELPERS_FOREIGN || claim->owner == j->owner) && shares_device(claim, j);
}

enum claims_may claims_may_begin(const struct helpers *h, const struct helpers_job *j)
{
	unsigned busy = 0, hung = 0, all_hung = 0;
	bool waits = false;

	for (unsigned i = 0; i < HELPERS_PENALTIES; i++) {
		const struct helpers_penalty *p = &h->penalties[i];

		if (p->until_ns <= h->now_ns)
			continue;
		if (is_same_thing(&p->claim, j))
			return CLAIMS_MAY_NEVER;
		hung += is_same_lane(&p->claim, j) && p->claim.owner == j->owner;
	}
	for (unsigned i = 0; i < HELPERS_WORKERS; i++) {
		const struct helpers_worker *w = &h->workers[i];

		if (!claims_is_busy(w))
			continue;
		const bool same_lane = is_same_lane(&w->claim, j),
			   same = is_same_thing(&w->claim, j);

		if (same && w->hung)
			return CLAIMS_MAY_NEVER;
		waits |= same;
		all_hung += w->hung && same_lane;
		if (same_lane && w->claim.owner == j->owner) {
			hung += w->hung && !w->penalized;
			busy++;
		}
	}
	if (!j->owner)
		hung = 0;
	if (hung >= (j->lane == HELPERS_SAFE ? SAFE_OF_OWNER : HELPERS_OF_OWNER) ||
	    all_hung >= HELPERS_HANGING)
		return CLAIMS_MAY_NEVER;
	if (j->lane == HELPERS_SAFE)
		return CLAIMS_MAY_BEGIN;
	return waits || (j->owner && busy >= HELPERS_OF_OWNER) ? CLAIMS_MAY_WAIT : CLAIMS_MAY_BEGIN;
}

void claims_take(struct helpers *h, struct helpers_worker *w, const struct helpers_job *j)
{
	w->claim = (struct helpers_claim){
		.lane = j->lane, .owner = j->owner, .dev_count = j->dev_count, .pid = j->pid
	};
	memcpy(w->claim.devs, j->devs, sizeof(j->devs));
	if (h->owners && w->claim.owner)
		owner_get(w->claim.owner);
	w->charged = w->slow;
	if (w->charged)
		claims_charge(h, w->claim.owner, OWNER_OPENERS);
}

void claims_drop(struct helpers *h, struct helpers_worker *w)
{
	if (w->charged)
		claims_release(h, w->claim.owner, OWNER_OPENERS);
	w->charged = false;
	if (h->owners && w->claim.owner)
		owner_put(h->owners, w->claim.owner);
	w->claim = (struct helpers_claim){ .owner = NULL };
}

void claims_forgive(struct helpers *h, struct helpers_penalty *p)
{
	if (h->owners && p->claim.owner)
		owner_put(h->owners, p->claim.owner);
	*p = (struct helpers_penalty){ .until_ns = 0 };
}

void claims_penalize(struct helpers *h, const struct helpers_claim *claim)
{
	struct helpers_penalty *p = &h->penalties[h->next_penalty++ % HELPERS_PENALTIES];

	claims_forgive(h, p);
	*p = (struct helpers_penalty){ .claim = *claim,
				       .until_ns = h->now_ns + HELPERS_PENALTY_NS };
	if (h->owners && p->claim.owner)
		owner_get(p->claim.owner);
}
