/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weaving: merges the native frames of a sample with the interpreted frames that the runtimes'
 * walks found (bpf/runtime.h), in their true order. Interpreted frames go to the places where
 * native code entered the runtime.
 *
 * A chain of interpreted frames follows the native frame that runs it, leaf first. This is the
 * frame that the walk marked. If a runtime's entries have no address, it is the next frame in the
 * runtime's loop. That frame runs one interpreted frame or a chain of them (enum runtime_by_loop).
 * If the frame of a chain was not found, the chain is put before that of the next frame that was,
 * or at the end, so no frame is lost. With several runtimes in one thread, a marked frame runs the
 * chain whose entry is nearest.
 *
 * A native frame that a runtime took over has its own items (SAMPLE_FRAME_TAKEN), which replace it.
 *
 * Two kinds of generated code count as part of the loop:
 *
 * - code that called the loop in which a chain begins; with -X perf, CPython makes such a
 *   trampoline for each function
 * - code that the loop called by a stub (TABLES_RULE_STUB)
 */
#ifndef COMMON_WALK_WEAVE_H
#define COMMON_WALK_WEAVE_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/sample.h"
#include "bpf/tables.h"

#define WEAVE_MAX (SAMPLE_MAX_USER + RUNTIME_MAX_ITEMS)

struct weave_frame {
	uint64_t word;	  /* native: as in the sample; if a runtime took the frame over: without a
			   * file */
	uint64_t address; /* interpreted: of the runtime's object */
	uint64_t mark;	  /* position and check of the object */
	uint64_t address2, mark2; /* likewise, of the frame's second object; address2 0: none */
	uint32_t at;   /* index of the native frame's word, also if a runtime took the frame over */
	uint16_t slot; /* interpreted: slot of the runtime's file */
	bool interpreted;
	bool loop; /* native, and in the loop of a runtime or in its trampoline */
};

struct weave_config {
	/* Returns the config of the runtime in a slot's file, or NULL. Borrowed. */
	const struct runtime_config *(*runtime)(void *ctx, uint16_t slot);
	void *ctx;
};

/* The words of native frames, leaf first, and items of two words each. Borrowed. */
struct weave_input {
	const uint64_t *native, *items;
	uint32_t native_count, item_count;
};

/* The items of one runtime: [next, end). */
struct weave_run {
	uint32_t next, end;
	uint32_t entry;	   /* index after the next entry with an address, or `end` */
	uint64_t entry_at; /* that address; 0: none */
	uint16_t slot;	   /* slot of the runtime's file */
};
/* Splits items into runs, one for each runtime, and returns their number. If there are too many
 * runtimes, the items of the rest join the last run. */
uint32_t weave_split(const uint64_t *items, uint32_t count,
		     struct weave_run ret[static TABLES_PROCESS_RUNTIMES_MAX]);
/* Returns the run whose next entry is nearest to the leaf, or NULL. */
struct weave_run *weave_nearest(struct weave_run *runs, uint32_t count);
/* Advances the run to the item after its next entry. */
void weave_pass(const uint64_t *items, struct weave_run *r);

/* Weaves all frames and returns their number, at most `max`; native_count + item_count is always
 * enough. *ret_truncated: the walk of at least one runtime did not reach its end. */
uint32_t weave_all(const struct weave_input *in, const struct weave_config *c,
		   struct weave_frame *ret, uint32_t max, bool *ret_truncated);
/* Like weave_all, for a sample: at most WEAVE_MAX frames. */
uint32_t weave(const struct sample *s, const struct weave_config *c,
	       struct weave_frame ret[static WEAVE_MAX], bool *ret_truncated);

#endif
