/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's part of a sample in its true order: what the runtimes' walks found (items,
 * bpf/runtime.h) in the places where native code entered them.
 *
 * A chain of interpreted frames belongs behind the native frame that runs it: the one that the walk
 * marked, or, where a runtime's entries have no address, the next one in its loop. A chain whose
 * frame was not found comes before the next one that was, or at the end: nothing is left out. Of
 * several runtimes in one thread a marked frame runs the chain whose entry lies nearest, as the
 * walk has it.
 *
 * Generated code that called a loop in which a chain begins counts as a part of it: CPython makes a
 * trampoline for each function when it is asked to show itself to perf (-X perf).
 */
#ifndef PROFPIPE_WEAVE_H
#define PROFPIPE_WEAVE_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/sample.h"
#include "bpf/tables.h"

#define WEAVE_MAX (SAMPLE_MAX_USER + RUNTIME_MAX_ITEMS)

struct weave_frame {
	uint64_t word;	  /* native: as in the sample */
	uint64_t address; /* interpreted: of the runtime's object */
	uint64_t mark;	  /* position and check of it */
	uint16_t slot;	  /* interpreted: of the file that holds its runtime */
	bool interpreted;
	bool loop; /* native, and in the loop of a runtime, or its trampoline */
};

struct weave_config {
	/* The config of the runtime in a slot's file, NULL where there is none. Borrowed. */
	const struct runtime_config *(*runtime)(void *ctx, uint16_t slot);
	void *ctx;
};

/* Native frames, leaf first, and items of two words each. Borrowed. */
struct weave_input {
	const uint64_t *native, *items;
	uint32_t native_count, item_count;
};

/* Items of one runtime: [next, end). */
struct weave_run {
	uint32_t next, end;
	uint32_t entry;	   /* behind the next entry that has an address, or `end` */
	uint64_t entry_at; /* that address; 0: there is none */
	uint16_t slot;	   /* of the runtime's file */
};
/* How many runs items are of; what is of more runtimes than a process may have is of the last. */
uint32_t weave_split(const uint64_t *items, uint32_t count,
		     struct weave_run ret[static PROCESS_RUNTIMES_MAX]);
/* The one whose next entry is the nearest, or NULL. */
struct weave_run *weave_nearest(struct weave_run *runs, uint32_t count);
/* Goes on behind that entry. */
void weave_pass(const uint64_t *items, struct weave_run *r);

/* How many frames, at most `max`, of which native_count + item_count are enough. *ret_cut: a
 * runtime's walk did not come to its end. */
uint32_t weave_all(const struct weave_input *in, const struct weave_config *c,
		   struct weave_frame *ret, uint32_t max, bool *ret_cut);
/* The same of a sample: at most WEAVE_MAX. */
uint32_t weave(const struct sample *s, const struct weave_config *c,
	       struct weave_frame ret[static WEAVE_MAX], bool *ret_cut);

#endif
