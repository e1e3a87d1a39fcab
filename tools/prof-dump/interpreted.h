/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreted frames of one stack: the runtimes' walks that BPF runs (bpf/runtime.h), over the
 * same reader of memory as the native walk. A stranger's memory.
 */
#ifndef PROF_DUMP_INTERPRETED_H
#define PROF_DUMP_INTERPRETED_H

#include <stdint.h>
#include "bpf/walk.h"
#include "common/walk/weave.h"

#define INTERPRETED_MAX (1u << 16) /* items of one stack: frames may lead in circles */

/* Items as in a sample, two words each. Zero-initialise. */
struct items {
	uint64_t *words; /* owned */
	uint32_t count, cap;
};

/* Adds the items of the thread that w and env_current are set up for, by walk_begin and before
 * walk_place, of the runtime in the file of w->slot; w is as it was then. base: of the config's
 * addresses. 0, -ENOMEM. */
int interpreted_walk(struct walk *w, const struct runtime_config *c, uint64_t base,
		     struct items *ret);
void items_done(struct items *i);
/* Has the walk mark the frame that the nearest entry of runs, which weave_split made of i, lies in.
 * To be called when w->entry_at is 0, and before the first step. */
void items_expect(const struct items *i, struct weave_run *runs, uint32_t run_count,
		  struct walk *w);

#endif
