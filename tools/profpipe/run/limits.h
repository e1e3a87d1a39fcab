/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's limits (setrlimit(2), pids.max) that the tools need, and whether one of them ended a
 * tool. */
#ifndef PROFPIPE_RUN_LIMITS_H
#define PROFPIPE_RUN_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/status/check.h"

enum limits_verdict {
	LIMITS_TOO_LOW = 1, /* logged, with the limit and the value that the tools need */
};

/* The check of limit i, from 0 on, for doctor. False: there are no more. */
bool limits_check(size_t i, struct check *ret);
/* Raises the soft limits as far as the tools need and the hard ones allow. The tools inherit them.
 * 0, enum limits_verdict, -errno. */
int limits_raise(void);
/* The same, without a message or a refusal. 0, -errno. */
int limits_lift(void);
/* How many processes the kernel has killed since the boot because memory ran out; 0 if it does not
 * say. */
uint64_t limits_oom_kills(void);
/* Whether this host refuses to start as many threads as a tool needs. */
bool limits_threads_short(void);

#endif
