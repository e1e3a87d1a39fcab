/* SPDX-License-Identifier: Apache-2.0 */
/* What the tools need of their caller's limits (setrlimit(2), pids.max), and why one of them may
 * have ended. */
#ifndef PROFPIPE_LIMITS_H
#define PROFPIPE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/status/check.h"

#define LIMITS_TOO_LOW 1 /* said: which, and what is needed */

/* What there is of the limit i, from 0 on, as doctor says it. False: there are no more. */
bool limits_check(size_t i, struct check *ret);
/* Raises the soft limits as far as the tools need and the hard ones allow; they inherit them. 0,
 * LIMITS_TOO_LOW, -errno. */
int limits_raise(void);
/* The same, with nothing said or refused. 0, -errno. */
int limits_lift(void);
/* How many processes the kernel has killed for want of memory, since the boot and in all; 0 where
 * it does not say. */
uint64_t limits_oom_kills(void);
/* True: no such number of threads as a tool starts can be started here. */
bool limits_threads_short(void);

#endif
