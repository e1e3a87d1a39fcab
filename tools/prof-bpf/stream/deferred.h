/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deferred walk: for samples that came before the tables knew their process, a mapping or a
 * file's rows. Each brings its registers and the top of its stack, and waits until the tables know
 * these, at most DEFERRED_PATIENCE_NS. Then the same walker that runs in the kernel walks the copy.
 *
 * A walk of a deep stack costs much, and a user can have many. So a sample is walked again only if
 * something changed that its last walk lacked, else after longer and longer delays, and once at the
 * end. Owners take turns, and each may spend only a part of the time (walk_turns.h).
 */
#ifndef PROF_BPF_STREAM_DEFERRED_H
#define PROF_BPF_STREAM_DEFERRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "bpf/deferred.h"
#include "common/walk/tables/tables.h"

/* How long a sample waits for its rows. On a busy host, prof-deltas gets little cpu time. At the
 * end of a run the wait is shorter. */
#define DEFERRED_PATIENCE_NS 8000000000ull
#define DEFERRED_END_NS 1000000000ull

struct deferred_queue;
struct owners;

struct deferred_config {
	struct tables *tables;
	/* Limit of bytes for samples. If another one needs space, the oldest sample of the owner
	 * who has most is emitted as it is. */
	size_t ceiling;
	/* Gives the mappings of the sample's process at its time. *ret_whole: the mappings are
	 * complete. A negative result means that there are none, and will be none. */
	ssize_t (*mappings)(void *ctx, const struct sample *s, const struct tables_mapping **ret,
			    bool *ret_whole);
	/* Returns a number that changes whenever mappings of the sample's process may have changed.
	 * NULL: they may change at any time. */
	uint64_t (*changes)(void *ctx, const struct sample *s);
	/* A walk of the sample reached a file without rows, at addresses[0]. The others are words
	 * of its stack that may be return addresses. */
	void (*wants)(void *ctx, const struct sample *s, const uint64_t *addresses, size_t n);
	/* The kernel's walk ended at a file without rows (TABLES_UNASKED), and this walk is
	 * done. */
	void (*is_behind)(void *ctx, const struct sample *s);
	/* Takes a finished sample, which is followed by its frames. */
	void (*emit)(void *ctx, const struct sample *s);
	void *ctx;
};
int deferred_new(const struct deferred_config *c, struct deferred_queue **ret);
/* Charges copies and walks to the owners of their samples. o is borrowed; NULL: stops charging. */
void deferred_keep_owners(struct deferred_queue *q, struct owners *o);
void deferred_free(struct deferred_queue *q);
/* Takes a runtime's items (SAMPLE_ITEMS), or the memory that it fetched for its frames
 * (SAMPLE_FETCHED). They come before their sample, in another ring, and wait for it here. */
void deferred_ahead(struct deferred_queue *q, const struct sample *s);
/* Copies a sample. If memory is lacking, it is emitted as it is. */
void deferred_put(struct deferred_queue *q, const struct deferred_sample *d);
/* Walks what can be walked now, for a limited time. Gives up samples that have waited long enough;
 * with `all`, gives up all. */
void deferred_run(struct deferred_queue *q, uint64_t now_ns, bool all);
bool deferred_empty(const struct deferred_queue *q);

#endif
