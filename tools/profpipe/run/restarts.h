/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a tool that ended is started again: at once the first time, later and later if it ends again
 * and again, at last not at all. Pure.
 */
#ifndef PROFPIPE_RESTARTS_H
#define PROFPIPE_RESTARTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define RESTARTS_STREAK_MAX 8

struct restarts {
	unsigned count;	 /* starts after the first */
	unsigned streak; /* ends after a short life, one behind the other */
	uint64_t due_ns; /* CLOCK_MONOTONIC: it is to be started then; 0: not */
};
#define RESTARTS_FOR_EVER UINT_MAX
/* It ended, lived_ns after it was started. True: due_ns is set; false: as often as `most` allows
 * (RESTARTS_STREAK_MAX, or less, or RESTARTS_FOR_EVER), it is not. */
bool restarts_plan(struct restarts *r, uint64_t now_ns, uint64_t lived_ns, unsigned most);

#endif
