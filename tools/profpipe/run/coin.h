/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coin of probabilistic profiling: time is divided into intervals of equal length, and each
 * host samples in a part of them that chance selects.
 *
 * A coin depends on the host and on the interval's number only. So hosts choose independently of
 * each other, and a profpipe that starts again in the same interval chooses the same. The host is
 * known by the identity of its boot, since images of containers and of machines share other ones.
 * Pure, except for coin_seed.
 */
#ifndef PROFPIPE_RUN_COIN_H
#define PROFPIPE_RUN_COIN_H

#include <stdbool.h>
#include <stdint.h>

/* The seed of this host and boot. */
uint64_t coin_seed(void);
/* Whether the host samples at ns (CLOCK_REALTIME). percent: of all intervals, 0 to 100; length_ns:
 * of an interval, above 0. */
bool coin_heads(uint64_t seed, uint64_t ns, uint64_t length_ns, unsigned percent);

#endif
