/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a run: sampling ends, the last samples get what they wait for (LIFECYCLE_DRAINING),
 * and the end of the stream is sent (LIFECYCLE_FINISHING). A message that a peer did not get may
 * have been that end, so it is sent again.
 */
#ifndef PROF_BPF_RUN_ENDING_H
#define PROF_BPF_RUN_ENDING_H

#include <stdbool.h>
#include <stdint.h>
#include "common/wire/msg.h"

struct prof;

/* Ends sampling, unless it has ended. */
void ending_begin(struct prof *p, enum msg_end_reason reason);
/* Does the remaining work of the last two phases. Call it at each tick. */
void ending_tick(struct prof *p, uint64_t now_ns);
/* Call these when prof-symd connects or disconnects. */
void ending_peer_came(struct prof *p);
void ending_peer_went(struct prof *p);
/* Whether sampling has lasted for as long as it should, or the followed programs are gone. */
bool ending_is_due(const struct prof *p, uint64_t now_ns);
/* Whether a finished run has served prof-symd for long enough. */
bool ending_is_over(const struct prof *p);

#endif
