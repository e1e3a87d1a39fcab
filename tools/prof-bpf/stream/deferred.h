/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deferred walk: samples that came before the tables knew their process, a mapping or a file's
 * rows. Each brought its registers and the top of its stack, and is kept until the tables know, a
 * second at most; then the walker that the kernel runs walks the copy.
 */
#ifndef PROFPIPE_DEFERRED_H
#define PROFPIPE_DEFERRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/sample.h"
#include "common/walk/tables.h"

#define DEFERRED_PATIENCE_NS 1000000000ull

struct deferred_queue;

struct deferred_config {
	struct tables *tables;
	size_t ceiling; /* bytes of samples kept: the oldest goes as it is when another needs its
			   room */
	/* The mappings of the sample's process at its time. *ret_whole: nothing of them is on its
	 * way. Negative: there is none, nor will be. */
	ssize_t (*mappings)(void *ctx, const struct sample *s, const struct tables_mapping **ret,
			    bool *ret_whole);
	/* A sample that is done with: its frames behind it. */
	void (*emit)(void *ctx, const struct sample *s);
	void *ctx;
};
int deferred_new(const struct deferred_config *c, struct deferred_queue **ret);
void deferred_free(struct deferred_queue *q);
/* A runtime's items (SAMPLE_ITEMS). They are sent ahead of the sample that they are of, in another
 * ring; it waits for them. */
void deferred_items(struct deferred_queue *q, const struct sample *s);
/* Copies a sample in. One that there is no memory for is emitted as it is. */
void deferred_put(struct deferred_queue *q, const struct deferred_sample *d);
/* Walks what can be walked now, and gives up on what has waited long enough, or on all. */
void deferred_run(struct deferred_queue *q, uint64_t now_ns, bool all);
bool deferred_empty(const struct deferred_queue *q);

struct deferred_figures {
	uint64_t seen, completed, gave_up;
};
void deferred_figures(const struct deferred_queue *q, struct deferred_figures *ret);

#endif
