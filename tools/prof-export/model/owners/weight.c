/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/owners/weight.h"

#include "common/base/bytes/numbers.h"

#define INDEXED 11 /* bytes of an entry in an index, on average */
#define MAPPED 16  /* the same of an id in a map */

struct weight weight_of(const struct definitions *d, const struct epoch *e)
{
	return (struct weight){
		.kept = d->strings.text_len +
			d->strings.len * (sizeof(*d->strings.entries) + INDEXED) +
			d->files.len * (sizeof(*d->files.data) + INDEXED) +
			d->functions.len * (sizeof(*d->functions.data) + INDEXED) +
			d->frames.len *
				(sizeof(*d->frames.data) + sizeof(*d->self.data) + INDEXED) +
			d->stacks.len * (sizeof(*d->stacks.data) + INDEXED) +
			d->numbers.len * sizeof(*d->numbers.data) +
			d->processes.len * (sizeof(*d->processes.data) + INDEXED) +
			d->threads.len * (sizeof(*d->threads.data) + INDEXED) +
			d->buckets.len * (sizeof(*d->buckets.data) + INDEXED),
		.epoch = (table_ids_len(&e->cgroup_ids) + table_ids_len(&e->process_ids) +
			  table_ids_len(&e->thread_ids) + table_ids_len(&e->file_ids) +
			  table_ids_len(&e->function_ids) + table_ids_len(&e->frame_ids) +
			  table_ids_len(&e->stack_ids)) *
				 MAPPED +
			 e->processes.len * sizeof(*e->processes.data) +
			 e->threads.len * sizeof(*e->threads.data) +
			 e->groups.len * sizeof(*e->groups.data) + e->attributes +
			 annotations_weight(&e->annotations),
	};
}

void weight_charge(const struct definitions *d, const struct epoch *e, struct share *w,
		   struct weight before)
{
	const struct weight now = weight_of(d, e);

	if (now.epoch < before.epoch) {
		const size_t less = before.epoch - now.epoch;

		w->epoch -= numbers_smaller(less, w->epoch);
		before.epoch = now.epoch;
	}
	shares_take(w, &d->pool, now.kept - before.kept, now.epoch - before.epoch);
}
