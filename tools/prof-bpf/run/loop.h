/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop, which side-band records, peers and a timer wake. Samples wait in the ring buffers until
 * the timer fires, since a wake-up for each would cost as much as its walk. Side-band records wake
 * the loop within milliseconds, so that new processes are known early (gathering.h).
 */
#ifndef PROF_BPF_RUN_LOOP_H
#define PROF_BPF_RUN_LOOP_H

struct prof;

/* Call it when the parts exist that the loop listens to. Returns 0 or -errno. */
int loop_open(struct prof *p);
/* Handles all events until the stream has ended or the run is over (lifecycle.exit_now). */
void loop_run(struct prof *p);

#endif
