/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/rowqueue.h"

#include <stdlib.h>
#include <utlist.h>
#include "common/base/bytes/numbers.h"
#include "common/walk/tables/tables.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/owners/owners.h"

/* The waiting requests of an owner. */
struct rowline {
	const struct owner *owner;
	struct rowqueue_request *requests; /* in the order of arrival */
	unsigned held;
	struct rowline *prev, *next;
};

void rowqueue_request_free(struct rowqueue_request *r)
{
	closing_give(r->fd);
	closing_give(r->spare_fd);
	free(r);
}

void rowqueue_done(struct rowqueue *q)
{
	struct rowline *line, *next_line;
	struct rowqueue_request *r, *next;

	DL_FOREACH_SAFE(q->lines, line, next_line) {
		DL_FOREACH_SAFE(line->requests, r, next)
			rowqueue_request_free(r);
		free(line);
	}
	*q = (struct rowqueue){ .tables = q->tables };
}

uint64_t rowqueue_spent(const struct owner *owner, uint64_t now_ns)
{
	return owner ? owner_spent(owner, OWNER_ROWS_CPU, now_ns) : 0;
}

static struct rowline *line_of(struct rowqueue *q, const struct owner *owner)
{
	struct rowline *line;

	DL_FOREACH(q->lines, line) {
		if (line->owner == owner)
			return line;
	}
	line = calloc(1, sizeof(*line));
	if (line) {
		line->owner = owner;
		DL_APPEND(q->lines, line);
	}
	return line;
}

/* Closes a descriptor of the last request in the longest line. */
static void let_go(struct rowqueue *q)
{
	struct rowline *line, *most = NULL;
	struct rowqueue_request *r;

	DL_FOREACH(q->lines, line) {
		if (!most || line->held > most->held)
			most = line;
	}
	if (!most || !most->held)
		return;
	for (r = most->requests->prev; r->fd < 0; r = r->prev)
		;
	closing_give(r->fd);
	r->fd = -1;
	most->held--;
	q->held--;
}

bool rowqueue_add(struct rowqueue *q, struct rowqueue_request *r)
{
	struct rowline *line = line_of(q, r->owner);

	if (!line)
		return false;
	r->line = line;
	DL_APPEND(line->requests, r);
	q->count++;
	if (r->fd >= 0) {
		line->held++;
		if (++q->held > ROWQUEUE_HELD)
			let_go(q);
	}
	return true;
}

void rowqueue_take(struct rowqueue *q, struct rowqueue_request *r)
{
	struct rowline *line = r->line;

	DL_DELETE(line->requests, r);
	r->line = NULL;
	q->count--;
	if (r->fd >= 0) {
		line->held--;
		q->held--;
	}
	if (!line->requests) {
		DL_DELETE(q->lines, line);
		free(line);
	}
}

/* Whether a comes before b because no ordinary user can hold the lock of its file. */
static bool is_safer(const struct rowqueue *q, const struct rowqueue_request *a,
		     const struct rowqueue_request *b, uint64_t now_ns)
{
	return now_ns < q->wary_until_ns && !a->of.uid && b->of.uid;
}

/* Returns the first request of a line among those that were put aside, or among the others; NULL:
 * there is none. */
static struct rowqueue_request *first_of(const struct rowqueue *q, const struct rowline *line,
					 bool aside, uint64_t now_ns)
{
	struct rowqueue_request *r, *first = NULL;
	uint32_t most = 0;

	DL_FOREACH(line->requests, r) {
		const uint32_t samples = tables_file_samples(q->tables, r->slot);

		if ((r->stops > 0) != aside || now_ns < r->again_ns)
			continue;
		if (first && is_safer(q, first, r, now_ns))
			continue;
		if (!first || is_safer(q, r, first, now_ns) || (aside && r->stops < first->stops) ||
		    (samples > most && r->stops == first->stops)) {
			first = r;
			most = samples;
		}
	}
	return first;
}

uint64_t rowqueue_guess(const struct rowqueue_request *r)
{
	return r->of.size < ROWQUEUE_GUESS_MAX_NS / ROWQUEUE_NS_PER_BYTE
		       ? r->of.size * ROWQUEUE_NS_PER_BYTE
		       : ROWQUEUE_GUESS_MAX_NS;
}

/* Whether a comes before b. */
static bool is_before(const struct rowqueue *q, const struct rowqueue_request *a,
		      const struct rowqueue_request *b, uint64_t now_ns)
{
	if (is_safer(q, a, b, now_ns) || is_safer(q, b, a, now_ns))
		return is_safer(q, a, b, now_ns);
	const uint64_t takes_a = rowqueue_spent(a->owner, now_ns) + rowqueue_guess(a),
		       takes_b = rowqueue_spent(b->owner, now_ns) + rowqueue_guess(b);

	if (takes_a / ROWQUEUE_NEAR_NS != takes_b / ROWQUEUE_NEAR_NS)
		return takes_a < takes_b;
	return tables_file_samples(q->tables, a->slot) > tables_file_samples(q->tables, b->slot);
}

struct rowqueue_request *rowqueue_next(const struct rowqueue *q, bool idle, uint64_t now_ns)
{
	struct rowqueue_request *next = NULL;
	const struct rowline *line;

	/* A file that was put aside comes after others of its owner. Another owner's files that
	 * were not tried yet do not come before it if that owner has spent more: there could be any
	 * number of them. */
	DL_FOREACH(q->lines, line) {
		struct rowqueue_request *r = first_of(q, line, false, now_ns);

		if (!r && idle)
			r = first_of(q, line, true, now_ns);
		if (r && (!next || is_before(q, r, next, now_ns)))
			next = r;
	}
	return next;
}

struct rowqueue_request *rowqueue_find(const struct rowqueue *q, uint16_t slot, uint32_t serial)
{
	const struct rowline *line;
	struct rowqueue_request *r;

	DL_FOREACH(q->lines, line) {
		DL_FOREACH(line->requests, r) {
			if (r->slot == slot && r->serial == serial)
				return r;
		}
	}
	return NULL;
}

unsigned rowqueue_poorer(const struct rowqueue *q, const struct owner *owner, uint64_t ns,
			 uint64_t now_ns)
{
	const uint64_t spent = rowqueue_spent(owner, now_ns);
	const struct rowline *line;
	unsigned n = 0;

	/* A file that was put aside begins anew each time. So it makes others give way only if they
	 * have spent far more. */
	DL_FOREACH(q->lines, line) {
		const uint64_t its = rowqueue_spent(line->owner, now_ns);

		if (line->owner == owner)
			continue;
		n += (its < spent + ns && first_of(q, line, false, now_ns)) ||
		     (2 * its < spent && first_of(q, line, true, now_ns));
	}
	return n;
}

uint64_t rowqueue_least_spent(const struct rowqueue *q, uint64_t now_ns)
{
	const struct rowline *line;
	uint64_t least = UINT64_MAX;

	DL_FOREACH(q->lines, line)
		if (first_of(q, line, false, now_ns))
			least = numbers_smaller(least, rowqueue_spent(line->owner, now_ns));
	return least;
}

bool rowqueue_move(struct rowqueue *q, struct rowqueue_request *r, struct owner *owner)
{
	struct rowline *to = line_of(q, owner);

	if (!to)
		return false;
	rowqueue_take(q, r);
	r->owner = owner;
	(void)rowqueue_add(q, r);
	return true;
}
