/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to start an ended tool again: the first time at once, then later and later while it keeps
 * ending, at last not at all. Pure.
 */
#ifndef PROFPIPE_RUN_RESTARTS_H
#define PROFPIPE_RUN_RESTARTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define RESTARTS_STREAK_MAX 8

struct restarts {
	unsigned count;	 /* starts after the first */
	unsigned streak; /* short lives in a row */
	uint64_t due_ns; /* CLOCK_MONOTONIC of its next start; 0: none */
};
#define RESTARTS_FOR_EVER UINT_MAX
/* Plans the next start of a tool that lived for lived_ns. False: the streak has reached `most`
 * (RESTARTS_STREAK_MAX, less, or RESTARTS_FOR_EVER), and due_ns is not set. */
bool restarts_plan(struct restarts *r, uint64_t now_ns, uint64_t lived_ns, unsigned most);

#endif
