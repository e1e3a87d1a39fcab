/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model's samples as paths from the root: process, thread if wanted, then frames; each step is
 * a label, a number that the output chooses. Sorted, equal paths are neighbours and each shares its
 * longest prefix with the one before, so that both lines and trees are written in one pass, with 4
 * bytes of memory a path.
 */
#ifndef PROFPIPE_PATHS_H
#define PROFPIPE_PATHS_H

#include "tools/prof-export/model/model.h"

struct paths {
	const struct model *model;
	const struct model_bucket *buckets;
	const struct model_stack *stacks;
	const struct model_thread *threads;
	size_t thread_count, process_count;
	/* Borrowed. By frame, and by process and thread, with one more entry at the end for
	 * MODEL_NONE. NULL thread_label: threads are no step; NULL frame_label: a frame's label is
	 * its number. */
	const uint32_t *frame_label, *process_label, *thread_label;
	const uint32_t
		*rank; /* NULL, or the order of labels: rank[2 * label + (it is the path's last)] */
	uint32_t *sorted; /* buckets */
	size_t n;
};

void paths_init(struct paths *p, const struct model *m);
/* Fills sorted. 0, -ENOMEM. */
int paths_sort(struct paths *p);
void paths_done(struct paths *p);

size_t paths_length(const struct paths *p, uint32_t bucket);
uint32_t paths_label(const struct paths *p, uint32_t bucket, size_t depth);
/* How many steps from the root both share. */
size_t paths_common(const struct paths *p, uint32_t a, uint32_t b);

#endif
