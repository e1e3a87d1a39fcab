/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restarts: when to start an ended tool again. The first time at once, then after longer and longer
 * waits while it keeps ending, and finally not at all. Pure.
 */
#ifndef PROFPIPE_RUN_CHILDREN_RESTARTS_H
#define PROFPIPE_RUN_CHILDREN_RESTARTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define RESTARTS_STREAK_MAX 8

struct restarts {
	unsigned count;	 /* number of restarts */
	unsigned streak; /* consecutive short lives */
	uint64_t due_ns; /* CLOCK_MONOTONIC time of the next start; 0: none */
};
#define RESTARTS_FOR_EVER UINT_MAX
/* Plans the next start of a tool that lived for lived_ns. Returns false, without setting due_ns, if
 * the streak has reached `most` (RESTARTS_STREAK_MAX, less, or RESTARTS_FOR_EVER). */
bool restarts_plan(struct restarts *r, uint64_t now_ns, uint64_t lived_ns, unsigned most);

#endif
