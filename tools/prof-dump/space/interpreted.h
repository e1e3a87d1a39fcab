/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreted frames of one stack. The same walks of the runtimes that BPF runs (bpf/runtime.h)
 * read the same memory as the native walk. That memory is untrusted.
 */
#ifndef PROF_DUMP_SPACE_INTERPRETED_H
#define PROF_DUMP_SPACE_INTERPRETED_H

#include <stdint.h>
#include "bpf/walk/walk.h"
#include "common/walk/weave.h"

#define INTERPRETED_MAX (1u << 16) /* items of one stack; ends circular lists of frames */

/* Items as in a sample, two words each. Zero-initialize. */
struct interpreted_items {
	uint64_t *words; /* owned */
	uint32_t count, cap;
};

/* Adds the items of one thread and of the runtime in the file of w->slot. Call it after walk_begin
 * has set up w and env_current, and before walk_place; w is unchanged afterwards. base: base of the
 * config's addresses. Returns 0 or -ENOMEM. */
int interpreted_walk(struct walk *w, const struct runtime_config *c, uint64_t base,
		     struct interpreted_items *ret);
void interpreted_done(struct interpreted_items *i);
/* Tells the walk to mark the frame that contains the nearest entry of runs, which weave_split made
 * of i. Call it before the first step, while w->entry_at is 0. */
void interpreted_expect(const struct interpreted_items *i, struct weave_run *runs,
			uint32_t run_count, struct walk *w);

#endif
