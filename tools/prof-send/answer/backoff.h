/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before the next attempt. The wait grows with each consecutive failure. It has
 * jitter, so that the hosts of a fleet do not all return at the same time. It is never shorter than
 * the server asks for. Pure.
 */
#ifndef PROF_SEND_ANSWER_BACKOFF_H
#define PROF_SEND_ANSWER_BACKOFF_H

#include <stdint.h>

#define BACKOFF_FIRST_MS 500
#define BACKOFF_MOST_MS 30000
/* Longest delay that a server may ask for, so that none can silence us forever. */
#define BACKOFF_ASKED_MOST_S 3600

/* Returns a time between half of a step and the whole step, which doubles from BACKOFF_FIRST_MS up
 * to BACKOFF_MOST_MS. failures: consecutive, at least 1; random: any number; asked_ms: the server's
 * delay, 0 for none, to which up to an eighth is added. */
uint64_t backoff_ms(unsigned failures, uint64_t asked_ms, uint32_t random);

#endif
