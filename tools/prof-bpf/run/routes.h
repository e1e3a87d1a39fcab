/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes to the parsers, and when each of them is run. Files go to prof-deltas, which answers
 * with rows. Requests come from prof-symd, and the stream goes to it.
 */
#ifndef PROF_BPF_RUN_ROUTES_H
#define PROF_BPF_RUN_ROUTES_H

#include <stdint.h>
#include "tools/prof-bpf/run/wakeups.h"

struct prof;

/* Records which routes are due after the loop was woken. */
void routes_wake(struct prof *p, enum wakeups_source from);
/* Sends and takes the messages that are due. */
void routes_run(struct prof *p);
/* Handles that prof-symd connected or disconnected, at the end of the stream. */
void routes_take_peers(struct prof *p);
/* Requests files whose temporary quarantine has ended: nobody else will. */
void routes_ask_again(struct prof *p, uint64_t now_ns);

#endif
