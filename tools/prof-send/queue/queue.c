/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/queue/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

const char *const queue_losses[QUEUE_LOSSES] = {
	[QUEUE_FULL] = "dropped from the full queue",
	[QUEUE_SPOOL_FULL] = "dropped from the full spool",
	[QUEUE_REFUSED] = "refused by the receiver",
	[QUEUE_TOO_LARGE] = "too large",
	[QUEUE_DAMAGED] = "damaged",
	[QUEUE_MEMORY] = "dropped for lack of memory",
	[QUEUE_UNDELIVERED] = "not delivered in time",
};

void queue_init(struct queue *q, const struct queue_limits *limits, const struct spool *spool,
		uint64_t key)
{
	*q = (struct queue){ .limits = *limits, .spool = spool, .key = key, .next_serial = 1 };
	TAILQ_INIT(&q->entries);
}

static void forget(struct queue *q, struct queue_entry *e)
{
	TAILQ_REMOVE(&q->entries, e, link);
	q->count--;
	if (e->request)
		q->memory -= e->len;
	else
		q->spooled -= e->len;
	request_drop(e->request);
	free(e);
}

void queue_done(struct queue *q)
{
	while (!TAILQ_EMPTY(&q->entries))
		forget(q, TAILQ_FIRST(&q->entries));
}

static bool is_in_spool(const struct queue_entry *e)
{
	return !e->request;
}

static void remove_entry(struct queue *q, struct queue_entry *e)
{
	if (is_in_spool(e))
		spool_remove(q->spool, q->key, e->serial);
	forget(q, e);
}

void queue_lose(struct queue *q, enum queue_loss loss, uint64_t samples)
{
	q->counts.lost[loss]++;
	q->counts.lost_samples += samples;
}

/* Returns the oldest request, in the spool or in memory, that is not being sent. */
static struct queue_entry *oldest(struct queue *q, bool in_spool)
{
	struct queue_entry *e;

	TAILQ_FOREACH(e, &q->entries, link)
	if (is_in_spool(e) == in_spool && !(q->busy && e == TAILQ_FIRST(&q->entries)))
		return e;
	return NULL;
}

static bool drop_oldest(struct queue *q, bool in_spool)
{
	struct queue_entry *e = oldest(q, in_spool);

	if (!e)
		return false;
	queue_lose(q, in_spool ? QUEUE_SPOOL_FULL : QUEUE_FULL, e->samples);
	remove_entry(q, e);
	return true;
}

/* Drops the oldest entries until the limits are kept. The request that is being sent stays. */
static void keep_to_limits(struct queue *q)
{
	while (q->memory > q->limits.memory_max && drop_oldest(q, false))
		;
	while (q->spooled > q->limits.spool_max && drop_oldest(q, true))
		;
	while (q->count > q->limits.count_max) {
		const struct queue_entry *first = TAILQ_FIRST(&q->entries);

		if (q->busy)
			first = TAILQ_NEXT(first, link);
		if (!drop_oldest(q, is_in_spool(first)))
			break;
	}
}

static struct queue_entry *append(struct queue *q, struct request *r, const struct spool_entry *at)
{
	struct queue_entry *e = malloc(sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct queue_entry){ .request = r,
				   .serial = at->serial,
				   .samples = at->facts.samples,
				   .len = at->len + (r ? sizeof(*r) : SPOOLFILE_HEAD) };
	TAILQ_INSERT_TAIL(&q->entries, e, link);
	q->count++;
	if (r)
		q->memory += e->len;
	else
		q->spooled += e->len;
	return e;
}

int queue_resume(struct queue *q, struct spool_found *ret)
{
	int r = spool_find(q->spool, q->key, ret);

	for (size_t i = 0; !r && i < ret->n; i++) {
		r = append(q, NULL, &ret->entries[i]) ? 0 : -ENOMEM;
		q->counts.taken += !r;
	}
	q->next_serial = ret->last + 1;
	free(ret->entries);
	ret->entries = NULL;
	q->counts.taken += r ? 0 : ret->damaged;
	q->counts.lost[QUEUE_DAMAGED] += r ? 0 : ret->damaged;
	keep_to_limits(q);
	return r;
}

void queue_put(struct queue *q, struct request *r)
{
	const struct spool_entry at = { .serial = q->next_serial++,
					.facts = r->facts,
					.len = (uint32_t)r->len };
	bool spooled = false;

	q->counts.taken++;
	if (q->spool->folder >= 0) {
		q->spool_failure = spool_write(q->spool, q->key, at.serial, r);
		spooled = !q->spool_failure;
	}
	if (!append(q, spooled ? NULL : request_use(r), &at)) {
		if (spooled)
			spool_remove(q->spool, q->key, at.serial);
		else
			request_drop(r);
		queue_lose(q, QUEUE_MEMORY, at.facts.samples);
		return;
	}
	keep_to_limits(q);
}

struct request *queue_begin(struct queue *q)
{
	assert(!q->busy);
	for (;;) {
		struct queue_entry *e = TAILQ_FIRST(&q->entries);
		struct request *r = NULL;

		if (!e)
			return NULL;
		q->busy = true;
		if (!is_in_spool(e))
			return request_use(e->request);
		const int error = spool_read(q->spool, q->key, e->serial, &r);

		if (!error)
			return r;
		if (error != SPOOL_DAMAGED && error != -EIO) {
			/* There is no memory or descriptor now: try again later. */
			q->busy = false;
			return NULL;
		}
		queue_give_up(q, QUEUE_DAMAGED);
	}
}

void queue_again(struct queue *q)
{
	q->busy = false;
	keep_to_limits(q);
}

void queue_deliver(struct queue *q, bool partial, uint64_t rejected)
{
	struct queue_entry *e = TAILQ_FIRST(&q->entries);

	assert(q->busy && e);
	q->busy = false;
	q->counts.delivered++;
	q->counts.partial += partial;
	q->counts.rejected += rejected;
	q->counts.samples += e->samples;
	remove_entry(q, e);
}

void queue_give_up(struct queue *q, enum queue_loss loss)
{
	struct queue_entry *e = TAILQ_FIRST(&q->entries);

	assert(q->busy && e);
	q->busy = false;
	queue_lose(q, loss, e->samples);
	remove_entry(q, e);
}

bool queue_is_empty(const struct queue *q)
{
	return TAILQ_EMPTY(&q->entries);
}

bool queue_is_half_full(const struct queue *q)
{
	return q->memory > q->limits.memory_max / 2 || q->spooled > q->limits.spool_max / 2 ||
	       q->count > q->limits.count_max / 2;
}

void queue_end(struct queue *q)
{
	struct queue_entry *e;

	q->busy = false;
	TAILQ_FOREACH(e, &q->entries, link)
	{
		/* Try to write to the spool again: the disk may have room by now. */
		if (is_in_spool(e) || (q->spool->folder >= 0 &&
				       !spool_write(q->spool, q->key, e->serial, e->request)))
			q->counts.kept++;
		else
			queue_lose(q, QUEUE_UNDELIVERED, e->samples);
	}
	queue_done(q);
}

uint64_t queue_lost(const struct queue_counts *c)
{
	uint64_t n = 0;

	for (int i = 0; i < QUEUE_LOSSES; i++)
		n += c->lost[i];
	return n;
}
