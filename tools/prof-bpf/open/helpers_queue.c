/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>
#include "tools/prof-bpf/open/helpers_internal.h"

#define LOOKED_AT 64 /* jobs of one owner, in search for one that need not wait */

static void put_line(struct helpers *h, struct helpers_line *l, struct helpers_waiting *of,
		     bool sampled)
{
	if (l->jobs)
		return;
	DL_DELETE(of->lines[!sampled], l);
	HASH_DEL(of->by_owner[!sampled], l);
	free(l);
}

int queue_put(struct helpers *h, struct helpers_job *j, bool front)
{
	struct helpers_waiting *of = &h->lanes[j->lane];
	const bool sampled = j->sampled;
	struct helpers_line *l;

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
	h->waiting++;
	claims_charge(h, j->owner, OWNER_QUEUE);
	return 0;
}

void queue_remove(struct helpers *h, struct helpers_job *j)
{
	struct helpers_line *l = j->line;

	DL_DELETE(l->jobs, j);
	j->line = NULL;
	h->waiting--;
	claims_release(h, j->owner, OWNER_QUEUE);
	put_line(h, l, &h->lanes[j->lane], j->sampled);
}

void queue_end(struct helpers *h, struct helpers_job *j, int status)
{
	const uint64_t one = 1;

	j->status = status;
	DL_APPEND(h->ended, j);
	(void)!write(h->event_fd, &one, sizeof(one));
}

int helpers_submit(struct helpers *h, struct helpers_job *j)
{
	if (h->waiting >= 2 * HELPERS_QUEUE)
		return -ENOBUFS;
	/* The share takes long to compute. */
	if (h->waiting >= HELPERS_QUEUE / 2) {
		const uint64_t share = h->owners ? owners_share(h->owners, j->owner, OWNER_QUEUE,
								HELPERS_QUEUE)
						 : HELPERS_QUEUE;
		const uint64_t has = j->owner && h->owners ? j->owner->held[OWNER_QUEUE]
							   : h->waiting;

		if (has >= share) {
			if (j->owner && h->owners)
				owner_refuse(j->owner, OWNER_QUEUE, 1);
			return -ENOBUFS;
		}
	}
	const int r = queue_put(h, j, false);
	const uint64_t one = 1;

	if (r)
		return r;
	if (h->owners && j->owner)
		owner_get(j->owner);
	/* helpers_run sends it. */
	(void)!write(h->event_fd, &one, sizeof(one));
	return 0;
}

/* The next job of a line that may begin; ends those that never may. */
static struct helpers_job *next_of_line(struct helpers *h, struct helpers_line *l)
{
	struct helpers_job *j, *next, *found = NULL, *never = NULL;
	unsigned looked = 0;

	DL_FOREACH_SAFE(l->jobs, j, next) {
		const enum claims_may m = claims_may_begin(h, j);

		if (looked++ == LOOKED_AT || m == CLAIMS_MAY_BEGIN) {
			found = m == CLAIMS_MAY_BEGIN ? j : NULL;
			break;
		}
		if (m != CLAIMS_MAY_NEVER)
			continue;
		h->figures.refused++;
		if (h->owners && j->owner)
			owner_refuse(j->owner, OWNER_OPENERS, 1);
		/* The line goes with its last job. */
		if (never) {
			struct helpers_job *last = never;

			queue_remove(h, last);
			queue_end(h, last, -EBUSY);
		}
		never = j;
	}
	if (found)
		queue_remove(h, found);
	if (never) {
		queue_remove(h, never);
		queue_end(h, never, -EBUSY);
	}
	return found;
}

struct helpers_job *queue_take(struct helpers *h, enum helpers_lane lane)
{
	struct helpers_waiting *of = &h->lanes[lane];

	for (unsigned i = 0; i < 2; i++) {
		struct helpers_line *l, *next;
		unsigned lines;

		DL_COUNT(of->lines[i], l, lines);
		for (l = of->lines[i]; l && lines--; l = next) {
			const struct owner *owner = l->owner;

			next = l->next;
			struct helpers_job *j = next_of_line(h, l);

			if (!j)
				continue;
			/* Its owner's turn comes after all others'. The line may be gone. */
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

bool queue_is_empty(const struct helpers *h, enum helpers_lane lane)
{
	return !h->lanes[lane].lines[0] && !h->lanes[lane].lines[1];
}

void queue_end_all(struct helpers *h, int status)
{
	for (int lane = 0; lane < HELPERS_LANES; lane++)
		for (int i = 0; i < 2; i++)
			while (h->lanes[lane].lines[i]) {
				struct helpers_job *j = h->lanes[lane].lines[i]->jobs;

				queue_remove(h, j);
				queue_end(h, j, status);
			}
}
