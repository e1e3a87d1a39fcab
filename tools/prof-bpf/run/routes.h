/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes to the parsers: when each has its turn. Files go to prof-deltas, which answers with
 * rows; requests of prof-symd come from there; and the stream goes to prof-symd.
 */
#ifndef PROF_BPF_RUN_ROUTES_H
#define PROF_BPF_RUN_ROUTES_H

#include <stdint.h>
#include "tools/prof-bpf/run/wakeups.h"

struct prof;

/* The loop was woken: notes which routes are due. */
void routes_wake(struct prof *p, enum wakeups_source from);
/* Sends and takes the messages that are due. */
void routes_run(struct prof *p);
/* prof-symd came or went, at the stream's end. */
void routes_take_peers(struct prof *p);
/* Requests files whose temporary quarantine has ended: nobody else will. */
void routes_ask_again(struct prof *p, uint64_t now_ns);

#endif
