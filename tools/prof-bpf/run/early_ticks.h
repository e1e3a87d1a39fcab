/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Early ticks: after a file that no process had mapped before, a few ticks of the timer come early,
 * one sampling period apart. prof-symd looks at a new program, perhaps an interpreter, only after
 * its first sample. New files may never stop coming, so early ticks are limited to one per
 * EARLY_TICKS_NS, and a burst.
 *
 * Pure: times are CLOCK_MONOTONIC, in ns.
 */
#ifndef PROF_BPF_RUN_EARLY_TICKS_H
#define PROF_BPF_RUN_EARLY_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#define EARLY_TICKS_NS 100000000ull
#define EARLY_TICKS_BURST 8
#define EARLY_TICKS_TURNS 3 /* early ticks after a new file */

struct early_ticks {
	bool new_files;	  /* there were new files since early_ticks_begin */
	unsigned turns;	  /* early ticks to come */
	uint64_t paid_ns; /* when the budget covers the early ticks so far */
};

/* Whether files were new since the last call. If so, the next ticks should be early. */
bool early_ticks_begin(struct early_ticks *e);
/* Call it at a tick. Returns whether the next one should be early. */
bool early_ticks_next(struct early_ticks *e);
/* Whether the next tick may come after soon_ns instead of next_ns. If so, charges it to the
 * budget. */
bool early_ticks_may(struct early_ticks *e, uint64_t now_ns, uint64_t next_ns, uint64_t soon_ns);

#endif
