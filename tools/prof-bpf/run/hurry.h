/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hurry: after a file that no process had mapped before, a few ticks of the timer come early, one
 * sampling period apart. prof-symd looks at a new program, perhaps an interpreter, only after its
 * first sample. New files may never stop coming, so early ticks are limited to one per HURRY_NS,
 * and a burst.
 *
 * Pure: times are CLOCK_MONOTONIC, in ns.
 */
#ifndef PROF_BPF_RUN_HURRY_H
#define PROF_BPF_RUN_HURRY_H

#include <stdbool.h>
#include <stdint.h>

#define HURRY_NS 100000000ull
#define HURRY_BURST 8
#define HURRY_TURNS 3 /* early ticks after a new file */

struct hurry {
	bool new_files;	  /* there were new files since hurry_begin */
	unsigned turns;	  /* early ticks to come */
	uint64_t paid_ns; /* when the budget covers the early ticks so far */
};

/* Whether files were new since the last call. If so, the next ticks should be early. */
bool hurry_begin(struct hurry *h);
/* Call it at a tick. Returns whether the next one should be early. */
bool hurry_tick(struct hurry *h);
/* Whether the next tick may come after soon_ns instead of next_ns. If so, charges it to the
 * budget. */
bool hurry_may(struct hurry *h, uint64_t now_ns, uint64_t next_ns, uint64_t soon_ns);

#endif
