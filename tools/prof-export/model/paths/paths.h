/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths: the model's samples as steps from the root: process, thread if wanted, frames. Each step
 * is a label, which is a number that the output chooses. In sorted order, each path shares its
 * longest prefix with the one before. So an output writes lines or trees in one pass, with 4 bytes
 * of memory for each path.
 */
#ifndef PROF_EXPORT_MODEL_PATHS_PATHS_H
#define PROF_EXPORT_MODEL_PATHS_PATHS_H

#include "tools/prof-export/model/model.h"

struct paths {
	const struct model *model;
	const struct model_bucket *buckets;
	const struct model_stack *stacks;
	const struct model_thread *threads;
	size_t thread_count, process_count;
	/* Borrowed arrays: labels by frame, process and thread. The last two have one more entry,
	 * for MODEL_NONE. If thread_label is NULL, threads are not a step. If frame_label is NULL,
	 * a frame's label is its number. */
	const uint32_t *frame_label, *process_label, *thread_label;
	/* The order of labels: rank[2 * label + (the label ends its path)]. May be NULL. */
	const uint32_t *rank;
	uint32_t *sorted; /* buckets */
	size_t n;
};

void paths_init(struct paths *p, const struct model *m);
/* Fills sorted. 0, -ENOMEM. */
int paths_sort(struct paths *p);
void paths_done(struct paths *p);

size_t paths_length(const struct paths *p, uint32_t bucket);
uint32_t paths_label(const struct paths *p, uint32_t bucket, size_t depth);
/* The number of steps from the root that both paths share. */
size_t paths_common(const struct paths *p, uint32_t a, uint32_t b);

#endif
