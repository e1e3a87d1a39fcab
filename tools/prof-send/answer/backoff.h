/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before the next attempt: longer after each failure in a row, with jitter, so
 * that a fleet does not come back all at once. It is never less than the server asks for. Pure.
 */
#ifndef PROF_SEND_ANSWER_BACKOFF_H
#define PROF_SEND_ANSWER_BACKOFF_H

#include <stdint.h>

#define BACKOFF_FIRST_MS 500
#define BACKOFF_MOST_MS 30000
#define BACKOFF_ASKED_MOST_S 3600 /* a server's delay is cut there: none may silence us forever */

/* Between half of a step and the whole step, which doubles from BACKOFF_FIRST_MS up to
 * BACKOFF_MOST_MS. failures: in a row, 1 or more; random: any number; asked_ms: the server's delay,
 * 0 for none, to which up to an eighth is added. */
uint64_t backoff_ms(unsigned failures, uint64_t asked_ms, uint32_t random);

#endif
