/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>
#include "tools/prof-bpf/open/workers/workerpool_internal.h"

#define LOOKED_AT 64 /* jobs of one owner that are searched for one that need not wait */

static void put_line(struct workerpool *pool, struct workerpool_line *l,
		     struct workerpool_waiting *of, bool sampled)
{
	if (l->jobs)
		return;
	DL_DELETE(of->lines[!sampled], l);
	HASH_DEL(of->by_owner[!sampled], l);
	free(l);
}

int workerpool_queue_put(struct workerpool *pool, struct workerpool_job *j, bool front)
{
	struct workerpool_waiting *of = &pool->lanes[j->lane];
	const bool sampled = j->sampled;
	struct workerpool_line *l;

	HASH_FIND_PTR(of->by_owner[!sampled], &j->owner, l);
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return -ENOMEM;
		l->owner = j->owner;
		HASH_ADD_PTR(of->by_owner[!sampled], owner, l);
		DL_APPEND(of->lines[!sampled], l);
	}
	j->line = l;
	if (front)
		DL_PREPEND(l->jobs, j);
	else
		DL_APPEND(l->jobs, j);
	pool->waiting++;
	workerpool_claims_charge(pool, j->owner, OWNER_QUEUE);
	return 0;
}

void workerpool_queue_remove(struct workerpool *pool, struct workerpool_job *j)
{
	struct workerpool_line *l = j->line;

	DL_DELETE(l->jobs, j);
	j->line = NULL;
	pool->waiting--;
	workerpool_claims_release(pool, j->owner, OWNER_QUEUE);
	put_line(pool, l, &pool->lanes[j->lane], j->sampled);
}

void workerpool_queue_end(struct workerpool *pool, struct workerpool_job *j, int status)
{
	const uint64_t one = 1;

	j->status = status;
	DL_APPEND(pool->ended, j);
	(void)!write(pool->event_fd, &one, sizeof(one));
}

int workerpool_submit(struct workerpool *pool, struct workerpool_job *j)
{
	if (pool->waiting >= 2 * WORKERPOOL_QUEUE)
		return -ENOBUFS;
	/* Computing the share takes long, so do it only when the queue is half full. */
	if (pool->waiting >= WORKERPOOL_QUEUE / 2) {
		const uint64_t share = pool->owners ? owners_share(pool->owners, j->owner,
								   OWNER_QUEUE, WORKERPOOL_QUEUE)
						    : WORKERPOOL_QUEUE;
		const uint64_t has = j->owner && pool->owners ? j->owner->held[OWNER_QUEUE]
							      : pool->waiting;

		if (has >= share) {
			if (j->owner && pool->owners)
				owner_refuse(j->owner, OWNER_QUEUE, 1);
			return -ENOBUFS;
		}
	}
	const int r = workerpool_queue_put(pool, j, false);
	const uint64_t one = 1;

	if (r)
		return r;
	if (pool->owners && j->owner)
		owner_get(j->owner);
	/* workerpool_run sends it. */
	(void)!write(pool->event_fd, &one, sizeof(one));
	return 0;
}

void workerpool_withdraw(struct workerpool *pool, struct workerpool_job *j)
{
	if (!j->line)
		return;
	workerpool_queue_remove(pool, j);
	workerpool_queue_end(pool, j, -ECANCELED);
}

/* Returns the next job of a line that may begin; ends those that never may. */
static struct workerpool_job *next_of_line(struct workerpool *pool, struct workerpool_line *l)
{
	struct workerpool_job *j, *next, *found = NULL, *never = NULL;
	unsigned looked = 0;

	DL_FOREACH_SAFE(l->jobs, j, next) {
		const enum workerpool_claims_may m = workerpool_claims_may_begin(pool, j);

		if (looked++ == LOOKED_AT || m == WORKERPOOL_CLAIMS_MAY_BEGIN) {
			found = m == WORKERPOOL_CLAIMS_MAY_BEGIN ? j : NULL;
			break;
		}
		if (m != WORKERPOOL_CLAIMS_MAY_NEVER)
			continue;
		pool->figures.refused++;
		if (pool->owners && j->owner)
			owner_refuse(j->owner, OWNER_OPENERS, 1);
		/* The line is freed with its last job. */
		if (never) {
			struct workerpool_job *last = never;

			workerpool_queue_remove(pool, last);
			workerpool_queue_end(pool, last, -EBUSY);
		}
		never = j;
	}
	if (found)
		workerpool_queue_remove(pool, found);
	if (never) {
		workerpool_queue_remove(pool, never);
		workerpool_queue_end(pool, never, -EBUSY);
	}
	return found;
}

struct workerpool_job *workerpool_queue_take(struct workerpool *pool, enum workerpool_lane lane)
{
	struct workerpool_waiting *of = &pool->lanes[lane];

	for (unsigned i = 0; i < 2; i++) {
		struct workerpool_line *l, *next;
		unsigned lines;

		DL_COUNT(of->lines[i], l, lines);
		for (l = of->lines[i]; l && lines--; l = next) {
			const struct owner *owner = l->owner;

			next = l->next;
			struct workerpool_job *j = next_of_line(pool, l);

			if (!j)
				continue;
			/* Now its owner's turn comes after all others'. The line may have been
			 * freed. */
			HASH_FIND_PTR(of->by_owner[i], &owner, l);
			if (l) {
				DL_DELETE(of->lines[i], l);
				DL_APPEND(of->lines[i], l);
			}
			return j;
		}
	}
	return NULL;
}

bool workerpool_queue_is_empty(const struct workerpool *pool, enum workerpool_lane lane)
{
	return !pool->lanes[lane].lines[0] && !pool->lanes[lane].lines[1];
}

void workerpool_queue_end_all(struct workerpool *pool, int status)
{
	for (int lane = 0; lane < WORKERPOOL_LANES; lane++)
		for (int i = 0; i < 2; i++)
			while (pool->lanes[lane].lines[i]) {
				struct workerpool_job *j = pool->lanes[lane].lines[i]->jobs;

				workerpool_queue_remove(pool, j);
				workerpool_queue_end(pool, j, status);
			}
}
