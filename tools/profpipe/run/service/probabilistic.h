/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probabilistic profiling: time is divided into intervals of equal length, and each
 * host samples only in randomly chosen intervals.
 *
 * The choice depends only on the host and on the number of the interval. So hosts choose
 * independently of each other, and a profpipe that is restarted in an interval chooses the same
 * again. The host is identified by its boot id, since hosts made from one image can share other
 * ids. Pure, except for probabilistic_seed.
 */
#ifndef PROFPIPE_RUN_SERVICE_PROBABILISTIC_H
#define PROFPIPE_RUN_SERVICE_PROBABILISTIC_H

#include <stdbool.h>
#include <stdint.h>

/* The seed of this host and boot. */
uint64_t probabilistic_seed(void);
/* Whether the host samples at ns (CLOCK_REALTIME). percent: of the intervals, 0 to 100; length_ns:
 * length of an interval, above 0. */
bool probabilistic_samples(uint64_t seed, uint64_t ns, uint64_t length_ns, unsigned percent);

#endif
