/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's limits (setrlimit(2), pids.max): whether they suffice for the tools, and whether one
 * of them ended a tool. */
#ifndef PROFPIPE_RUN_RIGHTS_LIMITS_H
#define PROFPIPE_RUN_RIGHTS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/status/check.h"

enum limits_verdict {
	LIMITS_TOO_LOW = 1, /* logged, with the limit and the value that the tools need */
};

/* Checks limit number i, from 0 on, for doctor. Returns false if there are no more. */
bool limits_check(size_t i, struct check *ret);
/* Raises the soft limits to what the tools need, as far as the hard limits allow. The tools inherit
 * them. Returns 0, enum limits_verdict or -errno. */
int limits_raise(void);
/* Like limits_raise, but logs and refuses nothing. Returns 0 or -errno. */
int limits_lift(void);
/* How many processes the kernel has killed since boot because memory ran out; 0 if unknown. */
uint64_t limits_oom_kills(void);
/* Whether this host does not let a tool start as many threads as it needs. */
bool limits_threads_short(void);

#endif
